"""Check that the formats in `packages` can be made of the bundles, as far as the recipe's text says it."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.catalog import PACKAGE_FORMATS
from onnxbuild.core.recipe import Recipe
from onnxbuild.document.faults import Fault, Remark
from onnxbuild.document.parts import Parts, has_onnx
from onnxbuild.expansion.requested import PACKAGES, NamedBundle, PackagesOptions, named_bundles


def check_packages(parts: Parts) -> Iterator[Fault]:
    """Yield bundles that are named and not taken by a format, and inputs of types that a format doesn't support."""
    section = parts.sections.get(PACKAGES)
    is_written = parts.node(PACKAGES) is not None and has_onnx(parts.root)
    if not isinstance(section, PackagesOptions) or not is_written:
        return
    inputs = parts.inputs.values()
    bundles = {
        each.name: each for each in named_bundles(parts.sections.values(), parts.variants, inputs)
    }
    yield from _not_taken(parts, section, bundles)
    if any(section.includes(name) for name in parts.variants):
        yield from _types(parts, section)


def _not_taken(
    parts: Parts, section: PackagesOptions, bundles: dict[str, NamedBundle]
) -> Iterator[Fault]:
    for number, name in enumerate(section.variants):
        for form in section.asked if name in bundles else ():
            if why := PACKAGE_FORMATS[form].refuses(bundles[name]):
                what = f"{PACKAGES}.variants names '{name}', of which no `{form}` is made: {why}"
                fix = (
                    f"remove '{name}' from {PACKAGES}.variants, or `{form}` from {PACKAGES}; without "
                    "`variants`, each format is made of all bundles that it takes"
                )
                yield Fault(what, parts.at(PACKAGES, "variants", number), fix)


def _types(parts: Parts, section: PackagesOptions) -> Iterator[Fault]:
    for form in section.asked:
        for each in parts.inputs.values():
            if each.dtype in PACKAGE_FORMATS[form].no_dtypes:
                what = (
                    f"input '{each.name}' is {each.dtype}, which `{form}` packages don't support"
                )
                able = [
                    name for name, other in PACKAGE_FORMATS.items()
                    if each.dtype not in other.no_dtypes
                ]  # fmt: skip
                fix = f"remove `{form}` from `{PACKAGES}`; of {each.dtype} take {', '.join(able)}"
                yield Fault(what, parts.key_at(PACKAGES, form), fix)


def left_out_packages(recipe: Recipe) -> Iterator[Remark]:
    """Yield a remark for each format that is not made of all bundles, where `variants` names none."""
    section = recipe.sections.get(PACKAGES)
    if not isinstance(section, PackagesOptions) or section.variants:
        return
    variants = [each.name for each in recipe.variants]
    bundles = list(named_bundles(recipe.sections.values(), variants, recipe.inputs))
    for form in section.asked:
        refused = {each.name: PACKAGE_FORMATS[form].refuses(each) for each in bundles}
        for why in dict.fromkeys(why for why in refused.values() if why):
            names = ", ".join(name for name, each in refused.items() if each == why)
            yield Remark(f"{recipe.name}: no `{form}` package is made of {names}: {why}")
