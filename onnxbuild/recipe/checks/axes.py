"""Dynamic axes must fit their own rules, the shapes that name them, and the points that size them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnxbuild.catalog import SECTIONS
from onnxbuild.core.axis import Axis, is_sum, symbols_of, terms
from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault, hinted, nearest
from onnxbuild.document.node import Node, Path, dotted, locate, locate_key
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import Section
from onnxbuild.recipe.parts.dimensions import (
    USUAL_NAMES,
    axis_for,
    input_for_axis,
    is_input_for_axis,
    symbol_for,
    symbol_meant,
)


def check_axes(parts: Parts) -> Iterator[Fault]:
    """Yield the faults in `dynamic_axes`, in shapes, and in points."""
    for axis in parts.axes.values():
        yield from _axis(axis, parts)
    misspelt = _misspelt(parts)
    for symbol, unused in misspelt.items():
        what = f"axis '{unused}' is used by no shape of dummy_inputs"
        at = locate_key(parts.root, ("dynamic_axes", unused))
        yield Fault(hinted(what, symbol), at, f"write `{symbol}`")
    for name in _declared(parts, "dummy_inputs"):
        yield from _symbols(name, parts, misspelt)
    yield from _unused_axes(parts, misspelt)
    yield from _axes_in_sums_alone(parts)
    for section in SECTIONS.values():
        if section.has_points:
            yield from _points(section.name, parts, misspelt)


def _at(parts: Parts, *path: str | int) -> Location:
    return locate(parts.root, path)


def _declared(parts: Parts, key: str) -> list[str]:
    node = parts.node(key)
    return [] if node is None else list(node.members)


def _axis(axis: Axis, parts: Parts) -> Iterator[Fault]:
    path, step = ("dynamic_axes", axis.name), axis.multiple_of
    if axis.min > axis.max:
        what = f"axis '{axis.name}' has min {axis.min} above max {axis.max}"
        yield Fault(what, _at(parts, *path, "min"), "exchange the two")
        return
    below, above = axis.max // step * step, -(-axis.min // step) * step
    below = max(below, above, step)
    for key, size, near in (("min", axis.min, above), ("max", axis.max, below)):
        if size % step:
            what = f"axis '{axis.name}' has {key} {size}; expected a multiple of {step}"
            yield Fault(what, _at(parts, *path, key), f"write `{key}: {near}`")
    if not (axis.min % step or axis.max % step or axis.takes(axis.example)):
        what = f"axis '{axis.name}' has example {axis.example}; expected {axis.rule}"
        fix = f"write `example: {axis.nearest(axis.example)}`"
        yield Fault(what, _at(parts, *path, "example"), fix)


def _dimensions(name: str, parts: Parts) -> Iterator[tuple[int, object]]:
    """(position, dimension) of each part of an input's shape that has no fault."""
    shape = parts.node("dummy_inputs", name, "shape")
    for n, item in enumerate(shape.items if shape else ()):
        if parts.sound("dummy_inputs", name, "shape", n):
            yield n, item.value


def _with_paths(parts: Parts) -> Iterator[tuple[object, Path]]:
    """(dimension, its path) of all shapes."""
    for name in _declared(parts, "dummy_inputs"):
        for n, dimension in _dimensions(name, parts):
            yield dimension, ("dummy_inputs", name, "shape", n)


def _misspelt(parts: Parts) -> dict[str, str]:
    """Symbol that several shapes or points have, or the model's file, or with a usual name -> the unused axis that means it."""
    if not _shapes_are_sound(parts):
        return {}
    declared = _declared(parts, "dynamic_axes")
    used = [symbol for _, _, dimension in _all(parts) for symbol in symbols_of(dimension)]
    unused = [axis for axis in declared if axis not in used]
    named = used + [axis for section in SECTIONS.values() for axis in _in_points(section, parts)]
    in_files = {parts.at("model", key) for key in parts.declared("model")}
    by_file = [each for each in used if parts.at("dynamic_axes", each) in in_files]
    found = {near: axis for axis in unused if (near := nearest(axis, by_file))}
    for symbol in dict.fromkeys(used):
        near = nearest(symbol, unused)
        is_right = named.count(symbol) > 1 or symbol in USUAL_NAMES
        if symbol not in declared and is_right and near and near not in found.values():
            found[symbol] = near
    return found


def _in_points(section: Section, parts: Parts) -> Iterator[str]:
    """Yield the axes that points of a section name."""
    points = parts.node(section.name, "points")
    for point in points.items if points else ():
        yield from point.members


def _symbols(name: str, parts: Parts, misspelt: Mapping[str, str]) -> Iterator[Fault]:
    axes = parts.node("dynamic_axes")
    if axes is not None and not isinstance(axes.value, dict):
        return
    declared = _declared(parts, "dynamic_axes")
    for n, dimension in _dimensions(name, parts):
        if not isinstance(dimension, str):
            continue
        for symbol in symbols_of(dimension):
            if symbol in declared or symbol in misspelt:
                continue
            path = ("dummy_inputs", name, "shape", n)
            near = nearest(symbol, declared)
            what = f"symbol '{symbol}' in {dotted(path)} is not declared in dynamic_axes"
            fix = symbol_for(dimension, parts.root, path)
            fix = fix or f"add `{symbol}: {axis_for({})}` to dynamic_axes"
            if near:
                parts_of = (near if part == symbol else str(part) for part in terms(dimension))
                fix = f"write `{' + '.join(parts_of)}`"
            yield Fault(hinted(what, near), _at(parts, *path), fix)


def _unused_axes(parts: Parts, misspelt: Mapping[str, str]) -> Iterator[Fault]:
    if not _shapes_are_sound(parts):
        return
    used = {symbol for _, _, dimension in _all(parts) for symbol in symbols_of(dimension)}
    declared = _declared(parts, "dynamic_axes")
    asked_for = {*misspelt.values(), *(nearest(each, declared) for each in used - {*declared})}
    asked_for |= {symbol_meant(each, parts.root, path) for each, path in _with_paths(parts)}
    for name in declared:
        path = ("dynamic_axes", name)
        if name in used or name in asked_for or _is_no_axis(parts, name):
            continue
        if not is_input_for_axis(parts.root, path):
            what = f"axis '{name}' is used by no shape of dummy_inputs"
            fix = "remove it" if len(declared) > 1 else "remove `dynamic_axes`"
            yield Fault(what, locate_key(parts.root, path), f"{fix}, or use it in a shape")
        elif parts.sound(*path):
            yield input_for_axis(parts.root, path)


def _is_no_axis(parts: Parts, name: str) -> bool:
    """Whether its value is no mapping, which is a fault of its own."""
    node = parts.node("dynamic_axes", name)
    return node is not None and not isinstance(node.value, dict)


def _axes_in_sums_alone(parts: Parts) -> Iterator[Fault]:
    """Their sizes could not be read from an input: of `past + sequence` is known what it gives."""
    if not _shapes_are_sound(parts):
        return
    alone = {dimension for _, _, dimension in _all(parts) if not is_sum(dimension)}
    declared, reported = _declared(parts, "dynamic_axes"), set[str]()
    for name, n, dimension in _all(parts):
        for symbol in symbols_of(dimension) if is_sum(dimension) else ():
            if symbol in alone or symbol in reported or symbol not in declared:
                continue
            reported.add(symbol)
            path = ("dummy_inputs", name, "shape", n)
            what = f"axis '{symbol}' is only in sums, so no input shows its size: {dotted(path)}"
            fix = f"write `{'_'.join(map(str, symbols_of(dimension)))}_size`, an axis of its own"
            yield Fault(what, _at(parts, *path), fix)


def _all(parts: Parts) -> Iterator[tuple[str, int, int | str]]:
    """(input, position, dimension) of all shapes."""
    for name in _declared(parts, "dummy_inputs"):
        for n, dimension in _dimensions(name, parts):
            if isinstance(dimension, (int, str)):
                yield name, n, dimension


def _shapes_are_sound(parts: Parts) -> bool:
    names = _declared(parts, "dummy_inputs")
    return bool(names) and all(parts.sound("dummy_inputs", name, "shape") for name in names)


def _points(section: str, parts: Parts, misspelt: Mapping[str, str]) -> Iterator[Fault]:
    points = parts.node(section, "points")
    axes = parts.node("dynamic_axes")
    if points is None or not parts.sound(section, "points"):
        return
    if axes is not None and not isinstance(axes.value, dict):
        return
    declared = _declared(parts, "dynamic_axes")
    for n, point in enumerate(points.items):
        for name, member in point.members.items():
            path = (section, "points", n, name)
            if name in misspelt:
                continue
            if name not in declared:
                yield _undeclared(path, name, declared, member.at)
                continue
            yield from _point_sizes(path, member.node, parts.axes.get(name))


def _point_sizes(path: Path, node: Node, axis: Axis | None) -> Iterator[Fault]:
    """One size, or a list of them."""
    sizes = node.items if isinstance(node.value, tuple) else (node,)
    if not sizes:
        example = "[1, 8]" if axis is None else f"[{axis.example}]"
        yield Fault(
            f"{dotted(path)} is an empty list; expected sizes", node.at, f"write `{example}`"
        )
    if axis is None or axis.min > axis.max:
        return
    for each in sizes:
        size = each.value
        assert isinstance(size, int)
        if not axis.takes(size):
            what = f"{dotted(path)} is {size}; expected {axis.rule}"
            yield Fault(what, each.at, f"write `{axis.nearest(size)}`, or widen axis '{path[-1]}'")


def _undeclared(path: Path, name: str, declared: list[str], at: Location) -> Fault:
    near = nearest(name, declared)
    what = f"{dotted(path[:-1])} names axis '{name}', which dynamic_axes does not declare"
    if near:
        return Fault(hinted(what, near), at, f"write `{near}`")
    return Fault(what, at, f"declare '{name}' in dynamic_axes, or remove it")
