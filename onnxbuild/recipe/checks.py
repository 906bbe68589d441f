"""What no schema can say: a recipe's parts must fit each other."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import Axis, DummyInput, Location
from onnxbuild.recipe.faults import Fault, choices, show
from onnxbuild.recipe.node import Node, Path, dotted, locate, locate_key
from onnxbuild.recipe.parts import Parts

_INTEGER_RANGES = {
    "int64": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
}
_FLOAT_MAX = {"float16": 65504.0, "float32": 3.4028234663852886e38}


def check_parts(parts: Parts) -> Iterator[Fault]:
    """Every breach, as far as the parts without faults show it."""
    for axis in parts.axes.values():
        yield from _axis(axis, parts)
    for each in parts.inputs.values():
        yield from _symbols(each, parts)
        yield from _values(each, parts)
    yield from _unused_axes(parts)
    for section in ("reference", "benchmark"):
        yield from _points(section, parts)
    yield from _variant_names(parts)
    yield from _calibration(parts)
    yield from _evaluation(parts)
    yield from _providers(parts)
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


def _symbols(each: DummyInput, parts: Parts) -> Iterator[Fault]:
    declared = _declared(parts, "dynamic_axes")
    axes = parts.node("dynamic_axes")
    if axes is not None and not isinstance(axes.value, dict):
        return
    for n, size in enumerate(each.shape):
        if isinstance(size, int) or size in declared:
            continue
        path = ("dummy_inputs", each.name, "shape", n)
        near = did_you_mean(size, declared)
        what = f"symbol '{size}' in {dotted(path)} is not declared in dynamic_axes"
        fix = f"add `{size}: {{min: 1, max: 64, example: 2}}` to dynamic_axes"
        if near:
            what, fix = f"{what}; {near}", f"write `{near.split(chr(39))[1]}`"
        yield Fault(what, _at(parts, *path), fix)


def _unused_axes(parts: Parts) -> Iterator[Fault]:
    if set(parts.inputs) != set(_declared(parts, "dummy_inputs")) or not parts.inputs:
        return
    used = {size for each in parts.inputs.values() for size in each.shape}
    for name in _declared(parts, "dynamic_axes"):
        if name not in used and parts.sound("dynamic_axes", name):
            what = f"axis '{name}' is used by no shape of dummy_inputs"
            yield Fault(
                what, _key_at(parts, "dynamic_axes", name), "remove it, or use it in a shape"
            )


def _values(each: DummyInput, parts: Parts) -> Iterator[Fault]:
    path = ("dummy_inputs", each.name)
    if each.fill is not None and (each.low is not None or each.high is not None):
        what = f"{dotted(path)} has fill beside low or high; expected one or the other"
        yield Fault(what, _key_at(parts, *path, "fill"), "remove `fill`, or `low` and `high`")
        return
    for key, value in (("low", each.low), ("high", each.high), ("fill", each.fill)):
        expected = "" if value is None else _misfit(each.dtype, key, value)
        if expected:
            what = f"{dotted((*path, key))} is {show(value)}; expected {expected} for {each.dtype}"
            yield Fault(what, _at(parts, *path, key), f"write {expected}, or change `dtype`")
            return
    low = 0 if each.low is None and each.dtype in _INTEGER_RANGES else each.low
    if low is not None and each.high is not None and low >= each.high:
        what = (
            f"{dotted(path)} has low {show(low)} and high {show(each.high)}; expected low < high"
        )
        yield Fault(what, _at(parts, *path, "high"), "write a greater `high`")


def _misfit(dtype: str, key: str, value: float | bool) -> str:
    """What `value` should have been, or an empty string where it fits."""
    if dtype == "bool":
        if key != "fill":
            return "no low and no high"
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(value, bool):
        return "a number"
    if dtype in _INTEGER_RANGES:
        low, high = _INTEGER_RANGES[dtype]
        high += key == "high"
        fits = isinstance(value, int) and low <= value <= high
        return "" if fits else f"an integer from {low} to {high}"
    greatest = _FLOAT_MAX.get(dtype)
    fits = greatest is None or abs(value) <= greatest
    return "" if fits else f"a number from -{greatest:g} to {greatest:g}"


def _points(section: str, parts: Parts) -> Iterator[Fault]:
    points = parts.node(section, "points")
    if points is None or not parts.sound(section):
        return
    declared = _declared(parts, "dynamic_axes")
    for n, point in enumerate(points.items):
        for name, member in point.members.items():
            path = (section, "points", n, name)
            axis = parts.axes.get(name)
            size = member.node.value
            if name not in declared:
                yield _undeclared(path, name, declared, member.at)
            elif (
                axis is not None
                and axis.min <= axis.max
                and not axis.min <= _int(size) <= axis.max
            ):
                what = f"{dotted(path)} is {size}; expected {axis.min} to {axis.max}"
                fix = f"write a size in that range, or widen axis '{name}'"
                yield Fault(what, member.node.at, fix)


def _int(size: object) -> int:
    assert isinstance(size, int)
    return size


def _undeclared(path: Path, name: str, declared: list[str], at: Location) -> Fault:
    near = did_you_mean(name, declared)
    what = f"{dotted(path[:-1])} names axis '{name}', which dynamic_axes does not declare"
    if near:
        return Fault(f"{what}; {near}", at, f"write `{near.split(chr(39))[1]}`")
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
    if parts.node("calibration", "data") is not None or not parts.sound("calibration"):
        return
    for name, variant in parts.variants.items():
        if variant.mode == "static":
            what = f"variant '{name}' has mode 'static', and no calibration.data is named"
            yield Fault(what, variant.location, "add `calibration: {data: FILE.py:CALLABLE}`")


def _evaluation(parts: Parts) -> Iterator[Fault]:
    section = parts.node("evaluate")
    if section is None or not isinstance(section.value, dict):
        return
    missing = [key for key in ("data", "metric") if key not in section.members]
    if missing and (section.members or section.value == {}):
        what = f"evaluate has no {' and no '.join(missing)}; both are needed for a score"
        fix = f"add `{missing[0]}: FILE.py:CALLABLE`"
        yield Fault(what, _key_at(parts, "evaluate"), fix)


def _providers(parts: Parts) -> Iterator[Fault]:
    node = parts.node("providers")
    if node is None or not parts.sound("providers"):
        return
    seen: set[str] = set()
    for n, item in enumerate(node.items):
        name = str(item.value) if isinstance(item.value, str) else next(iter(item.members))
        if name in seen:
            what = f"providers names '{name}' twice; expected each once"
            yield Fault(what, _at(parts, "providers", n), "remove one of the two")
        seen.add(name)


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
                near = did_you_mean(name, parts.outputs)
                what = f"{dotted((*owner, 'outputs'))} names '{name}', which is no output"
                expected = near or f"expected {choices(parts.outputs)}"
                fix = f"write `{near.split(chr(39))[1]}`" if near else "write an output's name"
                yield Fault(f"{what}; {expected}", member.at, fix)
