"""Dynamic axes must fit their own rules, the shapes that name them, and the points that size them."""

from collections.abc import Iterator

from onnxbuild.catalog import SECTIONS
from onnxbuild.core.axis import Axis, is_sum, symbols_of, terms
from onnxbuild.core.recipe import Location
from onnxbuild.core.state import STATE
from onnxbuild.document.faults import Fault, hinted, nearest
from onnxbuild.document.node import Node, Path, dotted, locate, locate_key
from onnxbuild.document.parts import Parts
from onnxbuild.recipe.parts.keys import AXIS_EXAMPLE

_Shape = tuple[str, str, str]
"""The path of a shape: `("dummy_inputs", "ids", "shape")`."""


def check_axes(parts: Parts) -> Iterator[Fault]:
    """Yield the faults in `dynamic_axes`, in shapes, and in points."""
    for axis in parts.axes.values():
        yield from _axis(axis, parts)
    for path in _shapes(parts):
        yield from _symbols(path, parts)
    yield from _unused_axes(parts)
    yield from _axes_in_sums_alone(parts)
    for section in SECTIONS.values():
        if section.has_points:
            yield from _points(section.name, parts)


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


def _shapes(parts: Parts) -> list[_Shape]:
    """The paths of all shapes: of inputs, and of states."""
    keys = ("dummy_inputs", STATE)
    return [(key, name, "shape") for key in keys for name in _declared(parts, key)]


def _dimensions(path: _Shape, parts: Parts) -> Iterator[tuple[int, object]]:
    """(position, dimension) of each part of a shape that has no fault."""
    shape = parts.node(*path)
    for n, item in enumerate(shape.items if shape else ()):
        if parts.sound(*path, n):
            yield n, item.value


def _symbols(shape: _Shape, parts: Parts) -> Iterator[Fault]:
    axes = parts.node("dynamic_axes")
    if axes is not None and not isinstance(axes.value, dict):
        return
    declared = _declared(parts, "dynamic_axes")
    for n, dimension in _dimensions(shape, parts):
        if not isinstance(dimension, str):
            continue
        for symbol in symbols_of(dimension):
            if symbol in declared:
                continue
            path = (*shape, n)
            near = nearest(symbol, declared)
            what = f"symbol '{symbol}' in {dotted(path)} is not declared in dynamic_axes"
            axis = "batch" if symbol == "None" else symbol  # Python's, for any size
            fix = f"add `{axis}: {AXIS_EXAMPLE}` to dynamic_axes"
            fix = (
                fix if axis == symbol else f"write the name of an axis, such as `batch`, and {fix}"
            )
            if near:
                parts_of = (near if part == symbol else str(part) for part in terms(dimension))
                fix = f"write `{' + '.join(parts_of)}`"
            yield Fault(hinted(what, near), _at(parts, *path), fix)


def _unused_axes(parts: Parts) -> Iterator[Fault]:
    if not _shapes_are_sound(parts):
        return
    used = {symbol for _, _, dimension in _all(parts) for symbol in symbols_of(dimension)}
    declared = _declared(parts, "dynamic_axes")
    misspelt = {nearest(each, declared) for each in used - {*declared}}
    for name in declared:
        if name not in used and name not in misspelt and parts.sound("dynamic_axes", name):
            what = f"axis '{name}' is used by no shape of dummy_inputs"
            fix = "remove it" if len(declared) > 1 else "remove `dynamic_axes`"
            near = nearest(name, used)
            at = locate_key(parts.root, ("dynamic_axes", name))
            yield Fault(
                hinted(what, near),
                at,
                f"write `{near}`" if near else f"{fix}, or use it in a shape",
            )


def _axes_in_sums_alone(parts: Parts) -> Iterator[Fault]:
    """Their sizes could not be read from an input: of `past + sequence` is known what it gives."""
    if not _shapes_are_sound(parts):
        return
    alone = {dimension for _, _, dimension in _all(parts) if not is_sum(dimension)}
    declared, reported = _declared(parts, "dynamic_axes"), set[str]()
    for shape, n, dimension in _all(parts):
        for symbol in symbols_of(dimension) if is_sum(dimension) else ():
            if symbol in alone or symbol in reported or symbol not in declared:
                continue
            reported.add(symbol)
            path = (*shape, n)
            what = f"axis '{symbol}' is only in sums, so no input shows its size: {dotted(path)}"
            fix = f"write `{'_'.join(map(str, symbols_of(dimension)))}_size`, an axis of its own"
            yield Fault(what, _at(parts, *path), fix)


def _all(parts: Parts) -> Iterator[tuple[_Shape, int, int | str]]:
    """(path of the shape, position, dimension) of all shapes."""
    for path in _shapes(parts):
        for n, dimension in _dimensions(path, parts):
            if isinstance(dimension, (int, str)):
                yield path, n, dimension


def _shapes_are_sound(parts: Parts) -> bool:
    paths = _shapes(parts)
    return bool(paths) and all(parts.sound(*path) for path in paths)


def _points(section: str, parts: Parts) -> Iterator[Fault]:
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
