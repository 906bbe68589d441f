"""A model's inputs and outputs as Python has them: the modules of a wheel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.loaders import checked_inputs
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.onnxkit.packages.tables import signature_table
from onnxbuild.onnxkit.packages.templates import python_literal, rendered

MODULES = ("__init__.py", "model.py")
README = "README.md"
_SCALARS = {"bool": "np.bool_", "string": "np.object_"}
_TEXTS = "npt.NDArray[np.object_] | npt.NDArray[np.str_] | list[Any]"


def python_sources(signature: ModelSignature, names: dict[str, Any]) -> dict[str, str]:
    """Return file name -> text: `__init__.py`, `model.py`, `inputs.py`, `README.md`.

    Args:
        signature: The model's.
        names: `distribution`, `package`, `version` and `summary` of the wheel.
    """
    content = {
        **names,
        "inputs": [_port(port, signature) for port in signature.inputs],
        "outputs": [_port(port, signature) for port in signature.outputs],
        "axes": signature.axes,
        "labels": signature.labels,
        "golden": signature.golden,
        "example": example_call(signature),
        "table": signature_table(signature),
    }
    room = __package__ or ""
    made = {name: rendered(room, f"{name}.j2", **content) for name in (*MODULES, README)}
    checks = Path(str(checked_inputs.__file__)).read_text(encoding="utf-8")
    return {**made, "inputs.py": checks}


def example_call(signature: ModelSignature) -> str:
    """Return an argument of `run` with arrays at the example sizes."""
    fields = []
    for port in signature.inputs:
        shape = repr(port.example_shape or ())
        made = (
            f'np.full({shape}, "text", object)'
            if port.dtype == "string"
            else f"np.zeros({shape}, {json.dumps(port.dtype)})"
        )
        fields.append(f"{python_literal(port.name)}: {made}")
    return f"{{{', '.join(fields)}}}"


def _port(port: Port, signature: ModelSignature) -> dict[str, Any]:
    array = f"npt.NDArray[{_SCALARS.get(port.dtype, f'np.{port.dtype}')}]"
    symbols = dict.fromkeys(str(size) for size in port.shape or () if not isinstance(size, int))
    rules = [f"; {name}: {axis.rule}" for name in symbols if (axis := signature.axis(name))]
    return {
        "name": port.name,
        "dtype": port.dtype,
        "shape": port.shape,
        "about": " ".join(f"{port.dtype} {port.shape_text}{''.join(rules)}".split()),
        "takes": _TEXTS if port.dtype == "string" else f"{array} | list[Any]",
        "gives": array,
    }
