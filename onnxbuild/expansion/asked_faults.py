"""Faults of sections that ask for something to be made of variants."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.parts import Parts, has_onnx
from onnxbuild.expansion.asked import AskedOfVariants, PackagesOptions, bundles_of


def asked_faults(parts: Parts, section: str) -> Iterator[Fault]:
    """Yield variants that are none, and folders that two things would share.

    Args:
        parts: The recipe.
        section: Its section.
    """
    options = parts.sections.get(section)
    if not isinstance(options, AskedOfVariants) or parts.node(section) is None:
        return
    at = parts.key_at(section)
    if not has_onnx(parts.root):
        what = f"{section} is written, and formats leaves out onnx; it is made of ONNX models"
        yield Fault(what, at, f"add `onnx` to formats, or remove `{section}`")
        return
    if not options.asked:
        what = f"{section} names nothing to make; expected one of {', '.join(options.added)}"
        yield Fault(
            what, at, f"write `{section}: {{{options.added[0]}: {{}}}}`, or remove `{section}`"
        )
    if parts.sound("quantization"):
        yield from _variants(parts, section, options)


def _variants(parts: Parts, section: str, options: AskedOfVariants) -> Iterator[Fault]:
    bundles = list(parts.variants)
    if isinstance(options, PackagesOptions):
        bundles = [
            each for name in parts.variants for each in bundles_of(parts.sections.values(), name)
        ]
    for number, name in enumerate(options.variants):
        if name not in bundles:
            near = nearest(name, bundles)
            what = hinted(f"{section}.variants names '{name}', which is no variant", near)
            at = parts.at(section, "variants", number)
            yield Fault(what, at, f"write {near or choices(bundles)}")
    for folder in options.folders(bundles):
        if folder in parts.variants:
            what = f"variant '{folder}' has the name of a folder that {section} makes"
            at = parts.key_at("quantization", folder)
            yield Fault(what, at, "rename the variant")
