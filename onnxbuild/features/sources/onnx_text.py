"""`model: {onnx_text: FILE}`: a model in ONNX's own text form or in JSON, as `onnx.save` writes both; built as the frontend onnx does."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.expansion.feature import SourceFormat
from onnxbuild.expansion.model_source import ModelSource, SourceFacts, facts_of_renamed
from onnxbuild.onnxkit.ready_onnx.outline import DTYPES
from onnxbuild.onnxkit.sources.outline import OPSET, SourceOutline, SourceValue
from onnxbuild.onnxkit.sources.renaming import RENAME_HELP
from onnxbuild.regular_files import read_user_file

_TEXT, _JSON = (".onnxtxt", ".onnxtext"), (".onnxjson",)

_COMMENT, _CAPITAL = re.compile(r"#.*"), re.compile(r"[A-Z]")
_OPSET = re.compile(r'opset_import\s*:\s*\[[^\[\]]*?"(?:ai\.onnx)?"\s*:\s*(\d+)')
_SIGNATURE = re.compile(r"(?<![\w.])[\w.]+\s*\(([^()]*)\)\s*=>\s*\(([^()]*)\)\s*[<{]")
_VALUE = re.compile(
    r"\s*(\w+)(?:\s*\[([^\[\]]*)\]\s*|\s+)([^\s,=\[\]{}]+)\s*(=\s*\{[^{}]*\}\s*)?(?:,|\Z)"
)
_WEIGHT = re.compile(r"(?<![^\s,])([^\s,=\[\]{}]+)[ \t]*=[ \t]*\{")
_TYPES = {"float": "float32", "double": "float64"}
"""Types of the text form that recipes spell otherwise."""


@dataclass(frozen=True, slots=True)
class OnnxTextOptions:
    """Keys next to `onnx_text` in `model`."""

    rename: Mapping[str, str] = field(default_factory=dict, metadata={"help": RENAME_HELP})


def _look(path: Path) -> SourceOutline:
    """The signature of a model in text form: `name (float[N, 3] x) => (float[N, 2] y)`.

    Raises:
        SourceError: It is none.
        OSError: It can't be read.
    """
    try:
        text = read_user_file(path).decode("utf-8")
        inputs, outputs, opset = _of_json(text) if path.suffix in _JSON else _of_text(text)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = f"{path.name} can't be read: it is no model in ONNX's text form or in JSON"
        raise SourceError(what, "write it by `onnx.save(model, 'FILE.onnxtxt')`") from error
    return SourceOutline(inputs=inputs, outputs=outputs, opset=opset, facts={OPSET: opset})


_Signature = tuple[tuple[SourceValue, ...], tuple[SourceValue, ...], int]


def _of_text(text: str) -> _Signature:
    """Inputs without those that have values, outputs and the opset (onnx/docs/Syntax.md)."""
    plain = _COMMENT.sub("", text)
    opset, signature = _OPSET.search(plain), _SIGNATURE.search(plain)
    if opset is None or signature is None:
        raise ValueError(text[:80])
    inputs, outputs = (tuple(_values(each)) for each in signature.groups())
    weights = set(_WEIGHT.findall(plain, signature.end()))
    return tuple(each for each in inputs if each.name not in weights), outputs, int(opset[1])


def _values(written: str) -> Iterator[SourceValue]:
    at, written = 0, written.strip()
    while at < len(written):
        found = _VALUE.match(written, at)
        if found is None:
            raise ValueError(written[at : at + 80])
        kind, sizes, name, has_values = found.groups()
        shape = tuple(map(_size, sizes.split(","))) if sizes and sizes.strip() else ()
        if not has_values:
            yield SourceValue(name, _TYPES.get(kind, kind), shape)
        at = found.end()


def _size(written: str) -> int | str:
    size = written.strip()
    return int(size) if size.isdecimal() else size.removeprefix("?")


def _of_json(text: str) -> _Signature:
    """Inputs without those that have values, outputs and the opset, of protobuf's JSON."""
    model = json.loads(text, object_hook=_snake_case)
    graph = model["graph"]
    weights = {each.get("name") for each in graph.get("initializer", ())}
    opsets = {each.get("domain", ""): int(each["version"]) for each in model["opset_import"]}
    inputs, outputs = (
        tuple(_of_value(each) for each in graph.get(key, ()) if each["name"] not in weights)
        for key in ("input", "output")
    )
    return inputs, outputs, opsets.get("", opsets.get("ai.onnx", 0))


def _snake_case(fields: dict[str, Any]) -> dict[str, Any]:
    """Name fields as onnx.proto does; protobuf's JSON may have them in camelCase, too."""
    return {_CAPITAL.sub(lambda each: f"_{each[0].lower()}", k): v for k, v in fields.items()}


def _of_value(value: Mapping[str, Any]) -> SourceValue:
    tensor = value["type"]["tensor_type"]
    dims = tensor["shape"].get("dim", ()) if "shape" in tensor else None
    shape = None if dims is None else tuple(map(_of_dim, dims))
    return SourceValue(value["name"], DTYPES.get(tensor["elem_type"], "unknown"), shape)


def _of_dim(dim: Mapping[str, Any]) -> int | str:
    return int(dim["dim_value"]) if "dim_value" in dim else str(dim.get("dim_param", ""))


def _read(
    path: Path, outline: SourceOutline, options: OnnxTextOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of a model in text form: inputs, axes, outputs, opset.

    Raises:
        SourceError: No recipe can declare it.
    """
    return facts_of_renamed(path, outline, options.rename, written)


FEATURE = SourceFormat(
    name="onnx_text",
    source=ModelSource(
        help="a model in ONNX's text form (.onnxtxt) or in JSON (.onnxjson), relative to this file: it says its "
        "inputs, axes, outputs and opset, as far as the recipe does not",
        options=OnnxTextOptions,
        look=_look,
        read=_read,
        frontend="onnx",
        suffixes=(*_TEXT, *_JSON),
    ),
)
