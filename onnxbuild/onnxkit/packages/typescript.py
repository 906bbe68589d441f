"""A model's inputs and outputs as TypeScript and JavaScript have them; files of JavaScript that packages share."""

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

from onnxbuild.core.axis import is_sum
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port

ARRAYS = {
    "float32": "Float32Array", "float64": "Float64Array", "float16": "Float32Array", "bool": "Uint8Array",
    "int8": "Int8Array", "int16": "Int16Array", "int32": "Int32Array", "int64": "BigInt64Array",
    "uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array", "uint64": "BigUint64Array",
    "string": "string[]",
}  # fmt: skip
"""Element type -> what an output's `data` is; half precision comes as numbers."""

NO_ARRAY = "which JavaScript has no array for"

_TAKEN = {"float16": "HalfArray | Float32Array", "string": "readonly string[]"}
_ELEMENTS = {
    "bool": "boolean | 0 | 1", "int64": "bigint | number", "uint64": "bigint | number", "string": "string",
}  # fmt: skip


def shared_javascript(name: str) -> str:
    """Return the text of `tensors.js`, which checks inputs, or `judge.js`, which compares outputs with the original's."""
    room = resources.files(__package__ or "")
    return room.joinpath("javascript", name).read_text(encoding="utf-8")


def refused_port(signature: ModelSignature) -> Port | None:
    """Return an input or output whose type JavaScript has no array for; None if there is none."""
    return next((port for port in signature.ports if port.dtype not in ARRAYS), None)


def typed_port(port: Port, signature: ModelSignature) -> dict[str, str]:
    """Return what a declaration says of an input or output.

    These are `name`, `dtype`, `shape_text`, `rules` of its axes, `taken` (array that is passed), `element` (of
    nested arrays) and `given` (array that is returned).

    Args:
        port: One of the signature's, whose type is in ARRAYS.
    """
    names = [str(size) for size in port.shape or () if isinstance(size, str) and not is_sum(size)]
    rules = [f"; {name}: {axis.rule}" for name in names if (axis := signature.axis(name))]
    array = ARRAYS[port.dtype]
    return {
        "name": port.name,
        "dtype": port.dtype,
        "shape_text": port.shape_text,
        "rules": _in_comment("".join(dict.fromkeys(rules))),
        "taken": _TAKEN.get(port.dtype, array),
        "element": _ELEMENTS.get(port.dtype, "number"),
        "given": array,
    }


def javascript_signature(signature: ModelSignature) -> str:
    """Return the signature as an object of JavaScript, as `tensors.js` takes it."""
    axes = {
        axis.name: {"min": axis.min, "max": axis.max, "example": axis.example, "multiple_of": axis.multiple_of}
        for axis in signature.axes
    }  # fmt: skip
    said: dict[str, Any] = {
        "recipe": signature.recipe,
        "variant": signature.variant,
        "inputs": [_port(each) for each in signature.inputs],
        "outputs": [_port(each) for each in signature.outputs],
        "axes": axes,
        "golden": list(signature.golden),
    }
    return json.dumps(said, indent=2)


def example_call(signature: ModelSignature) -> str:
    """Return an argument of `run` with arrays at the example sizes, as an object of JavaScript."""
    fields = []
    for port in signature.inputs:
        count = 1
        for size in port.example_shape or ():
            count *= size
        array = (
            f"Array({count}).fill({json.dumps('text')})"
            if port.dtype == "string"
            else f"new {ARRAYS[port.dtype]}({count})"
        )
        shape = json.dumps(list(port.example_shape or ()))
        fields.append(f"{json.dumps(port.name)}: {{ data: {array}, shape: {shape} }}")
    return f"{{ {', '.join(fields)} }}"


def _port(port: Port) -> dict[str, Any]:
    shape = None if port.shape is None else list(port.shape)
    said = {"name": port.name, "dtype": port.dtype, "shape": shape}
    return {**said, "labels": list(port.labels)} if port.labels else said


def _in_comment(text: str) -> str:
    return text.replace("*/", "* /")


def constant_in(path: Path, name: str) -> Any:
    """Return a constant of a module that this version wrote: the JSON in its line `const NAME = JSON;`.

    Raises:
        ValueError: The module has no such line, or several.
    """
    lines = re.findall(rf"^const {name} = (.*);$", path.read_text(encoding="utf-8"), re.MULTILINE)
    if len(lines) != 1:
        raise ValueError(f"{path.name} has {len(lines)} lines `const {name}`, not one")
    return json.loads(lines[0])
