"""Check `formats` against the rest of the recipe."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.catalog import PROGRAM_FORMATS, SECTIONS
from onnxbuild.core.recipe import ONNX
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import locate_key
from onnxbuild.document.parts import Parts, has_onnx

_VARIANTS = {"quantization": "its variants are ONNX models"}


def check_formats(parts: Parts) -> Iterator[Fault]:
    """Yield keys that need ONNX where it is left out, and names that two folders would share."""
    if not parts.sound("formats"):
        return
    if not has_onnx(parts.root):
        sections = {name: each.needs_onnx for name, each in SECTIONS.items()}
        for key, why in (_VARIANTS | sections).items():
            if why and parts.node(key) is not None:
                what = f"{key} is written, and formats leaves out onnx; {why}"
                at = locate_key(parts.root, (key,))
                yield Fault(what, at, f"add `{ONNX}` to formats, or remove `{key}`")
    for name in parts.variants:
        if name.lower() in PROGRAM_FORMATS:
            what = f"variant '{name}' has the name of a format; both would be in one folder"
            at = locate_key(parts.root, ("quantization", name))
            yield Fault(what, at, f"rename it, such as `{name}-onnx`")
