"""Check `formats` against the rest of the recipe."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.catalog import PROGRAM_FORMATS
from onnxbuild.core.recipe import ONNX
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import locate_key
from onnxbuild.document.parts import Parts, format_nodes, has_onnx

_OF_ONNX = {
    "quantization": "its variants are ONNX models",
    "evaluate": "scores are those of ONNX models",
}


def check_formats(parts: Parts) -> Iterator[Fault]:
    """Keys that need ONNX where it is left out, names that two folders would share, tolerances."""
    if not parts.sound("formats"):
        return
    if not has_onnx(parts.root):
        for key, why in _OF_ONNX.items():
            if parts.node(key) is not None:
                what = f"{key} is written, and formats leaves out onnx; {why}"
                at = locate_key(parts.root, (key,))
                yield Fault(what, at, f"add `{ONNX}` to formats, or remove `{key}`")
    for name in parts.variants:
        if name.lower() in PROGRAM_FORMATS:
            what = f"variant '{name}' has the name of a format; both would be in one folder"
            at = locate_key(parts.root, ("quantization", name))
            yield Fault(what, at, f"rename it, such as `{name}-onnx`")
    for name in format_nodes(parts.root):
        outputs = parts.node("formats", name, "validate", "outputs")
        if outputs is None or not parts.outputs:
            continue
        for output, member in outputs.members.items():
            if output not in parts.outputs:
                what = f"formats.{name}.validate.outputs names '{output}', which is no output"
                yield Fault(what, member.at, f"write one of {', '.join(parts.outputs)}")
