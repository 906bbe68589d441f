"""Check that a recipe's parts fit each other, which no schema can express."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.catalog import MODES, all_features
from onnxbuild.core.file_names import same_on_disk
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import WrittenVariant
from onnxbuild.recipe.checks.axes import check_axes
from onnxbuild.recipe.checks.dummy_inputs import check_dummy_input
from onnxbuild.recipe.checks.formats import check_formats
from onnxbuild.recipe.checks.packages import check_packages
from onnxbuild.recipe.checks.providers import check_providers
from onnxbuild.recipe.parts.parts import variant_nodes


def check_parts(parts: Parts) -> Iterator[Fault]:
    """Yield the faults, as far as the parts without faults show them."""
    yield from check_axes(parts)
    for name in parts.declared("dummy_inputs"):
        yield from check_dummy_input(name, parts)
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
    inputs = parts.declared("dummy_inputs")
    for n, name in enumerate(parts.outputs):
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
