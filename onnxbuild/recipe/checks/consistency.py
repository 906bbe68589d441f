"""Check that a recipe's parts fit each other, which no schema can express."""

from collections.abc import Iterator

from onnxbuild.catalog import MODES, PACKAGE_FORMATS, PROGRAM_FORMATS, SECTIONS, all_features
from onnxbuild.core.file_names import same_on_disk
from onnxbuild.core.recipe import ONNX
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import locate_key
from onnxbuild.document.parts import Parts, has_onnx
from onnxbuild.expansion.feature import WrittenVariant
from onnxbuild.expansion.requested import PACKAGES, NamedBundle, PackagesOptions, named_bundles
from onnxbuild.recipe.checks.axes import check_axes
from onnxbuild.recipe.checks.dummy_inputs import check_dummy_input
from onnxbuild.recipe.checks.providers import check_providers
from onnxbuild.recipe.checks.states import check_states
from onnxbuild.recipe.parts.parts import variant_nodes

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
        for form in section.requested if name in bundles else ():
            if why := PACKAGE_FORMATS[form].refuses(bundles[name]):
                what = f"{PACKAGES}.variants names '{name}', of which no `{form}` is made: {why}"
                fix = (
                    f"remove '{name}' from {PACKAGES}.variants, or `{form}` from {PACKAGES}; without "
                    "`variants`, each format is made of all bundles that it takes"
                )
                yield Fault(what, parts.at(PACKAGES, "variants", number), fix)


def _types(parts: Parts, section: PackagesOptions) -> Iterator[Fault]:
    for form in section.requested:
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


def check_parts(parts: Parts) -> Iterator[Fault]:
    """Yield the faults, as far as the parts without faults show them."""
    yield from check_axes(parts)
    for name in parts.declared("dummy_inputs"):
        yield from check_dummy_input(name, parts)
    yield from check_states(parts)
    yield from _output_names(parts)
    yield from _variant_names(parts)
    yield from check_formats(parts)
    yield from check_providers(parts)
    for name, (at, node) in variant_nodes(parts.root).items():
        variant = WrittenVariant(name, at, node, parts.variants.get(name))
        mode = MODES.get(str(variant.mode))
        if mode is not None:
            yield from mode.variant_faults(variant, parts)
    for feature in all_features():
        yield from feature.faults(parts)
    yield from check_packages(parts)


def _output_names(parts: Parts) -> Iterator[Fault]:
    inputs, written = parts.declared("dummy_inputs"), parts.node("outputs")
    for n, name in enumerate(parts.outputs[: len(written.items) if written else 0]):
        if name in inputs:
            what = f"output '{name}' has the name of an input; a graph's names are unique"
            yield Fault(what, parts.at("outputs", n), _other_output(parts, name))


def _other_output(parts: Parts, name: str) -> str:
    """Return the fix for an output that is named as an input: its own name, or none where the model's file names it."""
    files = {parts.at("model", key) for key in parts.declared("model")}
    if parts.at("outputs") not in files:
        return f"write `{name}_out`"
    inputs = parts.declared("dummy_inputs")
    others = [each for each in parts.outputs if each not in inputs]
    if not others:
        return "save the model with an Identity in front of that output"
    return f"write `outputs: [{', '.join(others)}]`, which leaves it out"


def _variant_names(parts: Parts) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    mode = parts.node("quantization", "mode")
    if mode is not None and isinstance(mode.value, str):
        what = "'mode' in quantization is an option of a variant; expected the name of a variant"
        fix = f"write `quantization: {{NAME: {{mode: {mode.value}, ...}}}}`"
        place = "quantization.NAME.mode"
        yield Fault(what, parts.key_at("quantization", "mode"), fix, place=place)
    for name in parts.variants:
        first = seen.setdefault(same_on_disk(name), name)
        if first != name:
            what = f"variants '{first}' and '{name}' differ only in case: on some disks they are one folder"
            yield Fault(what, parts.key_at("quantization", name), "rename one of the two")
