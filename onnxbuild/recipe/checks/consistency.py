"""Check that a recipe's parts fit each other, which no schema can express."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from onnxbuild.core.recipe import Location
from onnxbuild.recipe.checks.ahead_of_time import check_ahead_of_time
from onnxbuild.recipe.checks.axes import check_axes
from onnxbuild.recipe.checks.dummy_inputs import check_dummy_input
from onnxbuild.recipe.checks.eight_bit import check_eight_bits
from onnxbuild.recipe.checks.formats import check_formats
from onnxbuild.recipe.checks.providers import check_providers
from onnxbuild.recipe.checks.sensitivity import check_sensitivity
from onnxbuild.recipe.checks.session import check_sessions
from onnxbuild.recipe.checks.weights import check_weights
from onnxbuild.recipe.parts.keys import CALLABLES
from onnxbuild.recipe.parts.parts import SECTIONS, Parts, variant_nodes
from onnxbuild.recipe.yaml.faults import Fault, choices, hinted, nearest
from onnxbuild.recipe.yaml.node import Node, dotted, locate, locate_key


def check_parts(parts: Parts) -> Iterator[Fault]:
    """Yield the faults, as far as the parts without faults show them."""
    yield from check_axes(parts)
    for name in _declared(parts, "dummy_inputs"):
        yield from check_dummy_input(name, parts)
    yield from _output_names(parts)
    yield from _variant_names(parts)
    yield from check_formats(parts)
    yield from check_ahead_of_time(parts)
    yield from _calibration(parts)
    yield from check_weights(parts)
    yield from check_eight_bits(parts)
    yield from _evaluation(parts)
    yield from _fidelity(parts)
    yield from check_sensitivity(parts)
    yield from _goals(parts)
    yield from check_sessions(parts)
    yield from check_providers(parts)
    yield from _tolerances(parts)


def _at(parts: Parts, *path: str | int) -> Location:
    return locate(parts.root, path)


def _key_at(parts: Parts, *path: str | int) -> Location:
    return locate_key(parts.root, path)


def _declared(parts: Parts, key: str) -> list[str]:
    node = parts.node(key)
    return [] if node is None else list(node.members)


def _output_names(parts: Parts) -> Iterator[Fault]:
    inputs = _declared(parts, "dummy_inputs")
    for n, name in enumerate(parts.outputs):
        if name in inputs:
            what = f"output '{name}' has the name of an input; a graph's names are unique"
            yield Fault(what, _at(parts, "outputs", n), f"write `{name}_out`")


def _variant_names(parts: Parts) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for name in parts.variants:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            what = f"variants '{first}' and '{name}' differ only in case: on some disks they are one folder"
            yield Fault(what, _key_at(parts, "quantization", name), "rename one of the two")


def _calibration(parts: Parts) -> Iterator[Fault]:
    calibration = parts.node("calibration")
    if parts.node("calibration", "data") or (calibration and not parts.sound("calibration")):
        return
    for name, (at, node) in variant_nodes(parts.root).items():
        mode = node if isinstance(node.value, str) else node.child("mode")
        included = None if isinstance(node.value, str) else node.child("include")
        is_static = mode is not None and mode.value == "static"
        if is_static or "static" in [each.value for each in (included.items if included else ())]:
            has = "has mode" if is_static else "tries"
            what = f"variant '{name}' {has} 'static', and no calibration.data is named"
            yield Fault(
                what, at, "add `calibration: {data: FILE.py:CALLABLE}` or `{data: FILE.npz}`"
            )


def _evaluation(parts: Parts) -> Iterator[Fault]:
    section = parts.node("evaluate")
    if section is None or not isinstance(section.value, dict):
        return
    known = {*CALLABLES["evaluate"], *(each.name for each in fields(SECTIONS["evaluate"]))}
    if set(section.members) - known:
        return  # one of them may be what is meant
    missing = [key for key in ("data", "metric") if key not in section.members]
    if missing and section.members:
        what = f"evaluate has no {' and no '.join(missing)}; both are needed for a score"
        fix = f"add `{missing[0]}: FILE.py:CALLABLE`"
        yield Fault(what, _key_at(parts, "evaluate"), fix)


def _fidelity(parts: Parts) -> Iterator[Fault]:
    section = parts.node("fidelity")
    if section is None or not isinstance(section.value, dict) or "data" in section.members:
        return
    if section.members and parts.sound("fidelity"):
        what = "fidelity has no data; variants are compared with the fp32 model on it"
        yield Fault(what, _key_at(parts, "fidelity"), "add `data: FILE.py:CALLABLE`")


def _goals(parts: Parts) -> Iterator[Fault]:
    """Check the options that a search needs."""
    for name, (at, node) in variant_nodes(parts.root).items():
        mode = None if isinstance(node.value, str) else node.child("mode")
        if node.value == "auto":
            what = f"variant '{name}' has mode 'auto', and no goal"
            yield Fault(what, at, f"write `{name}: {{mode: auto, goal: {{cosine_mean: 0.995}}}}`")
        if mode is None or mode.value != "auto":
            continue
        goal = node.child("goal")
        asked = set() if goal is None else set(goal.members)
        if not asked:
            what = f"variant '{name}' has mode 'auto', and no goal"
            yield Fault(what, at, "add `goal: {cosine_mean: 0.995}`")
        if asked - {"max_drop"} and not parts.node("fidelity", "data"):
            what = f"variant '{name}' has a goal on fidelity, and no fidelity.data is named"
            yield Fault(what, at, "add `fidelity: {data: FILE.py:CALLABLE}`")
        if "max_drop" in asked and not parts.node("evaluate", "data"):
            what = f"variant '{name}' has the goal 'max_drop', and the recipe has no `evaluate`"
            yield Fault(what, at, "add `evaluate: {data: ..., metric: ...}`")


def _tolerances(parts: Parts) -> Iterator[Fault]:
    if not parts.outputs:
        return
    owners: list[tuple[str, ...]] = [("validate", p) for p in _declared(parts, "validate")]
    owners += [("quantization", name, "validate") for name in _declared(parts, "quantization")]
    for owner in owners:
        outputs: Node | None = parts.node(*owner, "outputs")
        if outputs is None or not parts.sound(*owner):
            continue
        for name, member in outputs.members.items():
            if name not in parts.outputs:
                near = nearest(name, parts.outputs)
                expected = f"expected {choices(parts.outputs)}"
                what = f"{dotted((*owner, 'outputs'))} names '{name}', which is no output"
                fix = f"write `{near}`" if near else "write an output's name"
                yield Fault(hinted(what, near, expected), member.at, fix)
