"""What no schema can say: a recipe's parts must fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from onnxbuild.core.recipe import Axis, Location
from onnxbuild.recipe.ahead_of_time_checks import check_ahead_of_time
from onnxbuild.recipe.dummy_input_checks import check_dummy_input
from onnxbuild.recipe.eight_bit_checks import check_eight_bits
from onnxbuild.recipe.faults import Fault, choices, hinted, nearest
from onnxbuild.recipe.format_checks import check_formats
from onnxbuild.recipe.keys import CALLABLES
from onnxbuild.recipe.node import Node, Path, dotted, locate, locate_key
from onnxbuild.recipe.parts import SECTIONS, Parts, variant_nodes
from onnxbuild.recipe.provider_checks import check_providers
from onnxbuild.recipe.sensitivity_checks import check_sensitivity
from onnxbuild.recipe.session_checks import check_sessions
from onnxbuild.recipe.weight_checks import check_weights


def check_parts(parts: Parts) -> Iterator[Fault]:
    """Every breach, as far as the parts without faults show it."""
    for axis in parts.axes.values():
        yield from _axis(axis, parts)
    for name in _declared(parts, "dummy_inputs"):
        yield from _symbols(name, parts)
        yield from check_dummy_input(name, parts)
    yield from _unused_axes(parts)
    yield from _output_names(parts)
    for section in ("reference", "benchmark"):
        yield from _points(section, parts)
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


def _axis(axis: Axis, parts: Parts) -> Iterator[Fault]:
    path = ("dynamic_axes", axis.name)
    if axis.min > axis.max:
        what = f"axis '{axis.name}' has min {axis.min} above max {axis.max}"
        yield Fault(what, _at(parts, *path, "min"), "exchange the two")
    elif not axis.min <= axis.example <= axis.max:
        what = f"axis '{axis.name}' has example {axis.example}; expected {axis.min} to {axis.max}"
        fix = f"write `example: {min(max(axis.example, axis.min), axis.max)}`"
        yield Fault(what, _at(parts, *path, "example"), fix)


def _sizes(name: str, parts: Parts) -> Iterator[tuple[int, object]]:
    """(position, size or symbol) of each part of an input's shape that has no fault."""
    shape = parts.node("dummy_inputs", name, "shape")
    for n, item in enumerate(shape.items if shape else ()):
        if parts.sound("dummy_inputs", name, "shape", n):
            yield n, item.value


def _symbols(name: str, parts: Parts) -> Iterator[Fault]:
    axes = parts.node("dynamic_axes")
    if axes is not None and not isinstance(axes.value, dict):
        return
    declared = _declared(parts, "dynamic_axes")
    for n, size in _sizes(name, parts):
        if not isinstance(size, str) or size in declared:
            continue
        path = ("dummy_inputs", name, "shape", n)
        near = nearest(size, declared)
        what = f"symbol '{size}' in {dotted(path)} is not declared in dynamic_axes"
        fix = f"add `{size}: {{min: 1, max: 64, example: 2}}` to dynamic_axes"
        yield Fault(hinted(what, near), _at(parts, *path), f"write `{near}`" if near else fix)


def _unused_axes(parts: Parts) -> Iterator[Fault]:
    names = _declared(parts, "dummy_inputs")
    if not all(parts.sound("dummy_inputs", name, "shape") for name in names) or not names:
        return
    used = {size for name in names for _, size in _sizes(name, parts)}
    for name in _declared(parts, "dynamic_axes"):
        if name not in used:
            what = f"axis '{name}' is used by no shape of dummy_inputs"
            at = _key_at(parts, "dynamic_axes", name)
            yield Fault(what, at, "remove it, or use it in a shape")


def _output_names(parts: Parts) -> Iterator[Fault]:
    inputs = _declared(parts, "dummy_inputs")
    for n, name in enumerate(parts.outputs):
        if name in inputs:
            what = f"output '{name}' has the name of an input; a graph's names are unique"
            yield Fault(what, _at(parts, "outputs", n), f"write `{name}_out`")


def _points(section: str, parts: Parts) -> Iterator[Fault]:
    points = parts.node(section, "points")
    if points is None or not parts.sound(section, "points"):
        return
    declared = _declared(parts, "dynamic_axes")
    for n, point in enumerate(points.items):
        for name, member in point.members.items():
            path = (section, "points", n, name)
            if name not in declared:
                yield _undeclared(path, name, declared, member.at)
                continue
            yield from _point_sizes(path, member.node, parts.axes.get(name))


def _point_sizes(path: Path, node: Node, axis: Axis | None) -> Iterator[Fault]:
    """One size, or a list of them."""
    sizes = node.items if isinstance(node.value, tuple) else (node,)
    if not sizes:
        yield Fault(f"{dotted(path)} is an empty list; expected sizes", node.at, "write `[1, 8]`")
    if axis is None or axis.min > axis.max:
        return
    for each in sizes:
        if not axis.min <= _int(each.value) <= axis.max:
            what = f"{dotted(path)} is {each.value}; expected {axis.min} to {axis.max}"
            fix = f"write a size in that range, or widen axis '{path[-1]}'"
            yield Fault(what, each.at, fix)


def _int(size: object) -> int:
    assert isinstance(size, int)
    return size


def _undeclared(path: Path, name: str, declared: list[str], at: Location) -> Fault:
    near = nearest(name, declared)
    what = f"{dotted(path[:-1])} names axis '{name}', which dynamic_axes does not declare"
    if near:
        return Fault(hinted(what, near), at, f"write `{near}`")
    return Fault(what, at, f"declare '{name}' in dynamic_axes, or remove it")


def _variant_names(parts: Parts) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for name in parts.variants:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            what = (
                f"variants '{first}' and '{name}' differ in case alone: one folder on some disks"
            )
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
    """What a search needs to be told."""
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
