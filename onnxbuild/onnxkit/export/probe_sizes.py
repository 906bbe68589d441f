"""Sizes at which a model is tried: which points, what rule explains a failure, at which sizes two inputs agree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

from onnxbuild.core.axis import (
    Axis,
    Dimension,
    Point,
    empty_points,
    example_sizes,
    size_at,
    sums_of,
    symbols_of,
)
from onnxbuild.onnxkit.data.axis_rule import FoundRule

_LEAST_GENERAL_SIZE = 2
"""torch.export takes 0 and 1 for constants ("0/1 specialization", docs of torch.export)."""

_STEPS = (2, 3, 4, 6, 7, 8, 12, 14, 16, 24, 28, 32, 64, 128)
"""Products of strides, patch sizes and window sizes as networks have them, the least first."""

Runs = Callable[[Mapping[str, int]], bool]


def export_sizes(axes: Sequence[Axis], sums: Sequence[str] = ()) -> dict[str, int]:
    """Sizes near the examples, at least 2 and different for each axis where ranges allow.

    Two axes of one size are taken for one symbol by the exporters, and a size of 1 for a constant.

    Args:
        sums: Dimensions that are sums of them; their sizes differ from those of the axes, too.
    """
    return _distinct(axes, {axis.name: axis.example for axis in axes}, avoid={}, sums=sums)


def probe_points(axes: Sequence[Axis], sums: Sequence[str] = ()) -> tuple[Point, ...]:
    """Return where an export is compared with PyTorch.

    As exported, all axes otherwise, all at minimum, and each that may be empty at 0.
    """
    exported = export_sizes(axes, sums)
    points = [Point("exported", exported)]
    if axes:
        start = {axis.name: exported[axis.name] + axis.multiple_of for axis in axes}
        points.append(Point("other", _distinct(axes, start, avoid=exported, sums=sums)))
        points.append(Point("min", {axis.name: axis.min for axis in axes}))
        points += empty_points(axes, exported)
    kept: list[Point] = []
    for point in points:
        if all(point.sizes != earlier.sizes for earlier in kept):
            kept.append(point)
    return tuple(kept)


def axis_by_axis(
    axes: Sequence[Axis], point: Point, sums: Sequence[str] = ()
) -> tuple[tuple[str, Point], ...]:
    """The exported sizes with one axis at a time as at `point`: (axis name, point)."""
    exported = export_sizes(axes, sums)
    return tuple(
        (axis.name, Point(axis.name, {**exported, axis.name: point.sizes[axis.name]}))
        for axis in axes
        if point.sizes[axis.name] != exported[axis.name]
    )


def _distinct(
    axes: Sequence[Axis], start: dict[str, int], avoid: dict[str, int], sums: Sequence[str]
) -> dict[str, int]:
    """Return each axis's size: its start, or the nearest that no other axis has; ranges come first."""
    sizes: dict[str, int] = {}
    for axis in axes:
        first = axis.nearest(max(start[axis.name], _LEAST_GENERAL_SIZE))
        reach = len(axes) + 2 + 2 * len(sums)
        steps = [d * axis.multiple_of for d in range(1, reach + 1)]
        near = [first, *(n for d in steps for n in (first + d, first - d))]
        allowed = [n for n in near if axis.takes(n)]
        general = [n for n in allowed if n >= _LEAST_GENERAL_SIZE] or allowed
        fresh = [n for n in general if n != avoid.get(axis.name)] or general
        apart = (n for n in fresh if not _collide({**sizes, axis.name: n}, sums))
        sizes[axis.name] = next(apart, fresh[0])
    return sizes


def _collide(sizes: dict[str, int], sums: Sequence[str]) -> bool:
    """Return whether two axes have the same size, or an axis and a sum of axes whose sizes are known."""
    known = [each for each in sums if all(name in sizes for name in symbols_of(each))]
    found = [*sizes.values(), *(size_at(each, sizes) for each in known)]
    return len(set(found)) < len(found)


def find_rule(
    axes: Sequence[Axis], shapes: Sequence[Sequence[Dimension]], point: Point, runs: Runs
) -> FoundRule | None:
    """The rule of the axes that explains why forward fails at a probe point.

    Args:
        shapes: Shapes of the inputs.
        point: The first of the probe points at which forward fails.
        runs: Whether forward runs at these sizes.
    """
    sums = sums_of(shapes)
    exported = export_sizes(axes, sums)
    if point.name == "exported":
        return _multiples(axes, shapes, runs) or find_fixed(axes, shapes, runs)
    guilty = {name for name, one in axis_by_axis(axes, point, sums) if not runs(one.sizes)}
    if point.name == "other":
        return _multiples(axes, shapes, runs) if guilty and guilty <= _inner(shapes) else None
    low = [axis for axis in axes if axis.name in guilty & _inner(shapes)]
    return _least(low[0], exported, runs) if len(low) == len(guilty) == 1 else None


def _multiples(
    axes: Sequence[Axis], shapes: Sequence[Sequence[Dimension]], runs: Runs
) -> FoundRule | None:
    """The least step whose multiples forward takes, and the axes that need it.

    No axis that only ever comes first is among them: a batch is cut into no windows, and a number
    baked in for it (`.view(2, 16, -1)`) has multiples that run, too.
    """
    sums = sums_of(shapes)
    inner = _inner(shapes)
    for step in _STEPS:
        stepped = {a.name: _stepped(a, step) if a.name in inner else a for a in axes}
        if not _all_run(stepped.values(), sums, runs):
            continue
        for axis in axes:
            freed = {**stepped, axis.name: axis}
            if _all_run(freed.values(), sums, runs):
                stepped = freed
        changed = [each for each in stepped.values() if each not in axes]
        if not changed:
            return None
        names = " and ".join(f"'{each.name}'" for each in changed)
        rules = " and ".join(f"`{_written(each)}`" for each in changed)
        kind = f"axis {names} takes" if len(changed) == 1 else f"axes {names} take"
        return FoundRule(
            f"{kind} multiples of {changed[0].multiple_of} alone",
            f"write {rules} in `dynamic_axes`",
            axes=tuple(changed),
        )
    return None


def _inner(shapes: Sequence[Sequence[Dimension]]) -> set[str]:
    """The axes that come second or later in a shape."""
    return {name for shape in shapes for each in shape[1:] for name in symbols_of(each)}


def find_fixed(
    axes: Sequence[Axis], shapes: Sequence[Sequence[Dimension]], runs: Runs
) -> FoundRule | None:
    """The axes that take their example alone, where forward runs at the examples.

    Args:
        shapes: Shapes of the inputs.
        runs: Whether forward runs at these sizes.
    """
    exported, example = export_sizes(axes, sums_of(shapes)), example_sizes(axes)
    if not runs(example):
        return None
    guilty = [
        axis
        for axis in axes
        if not any(
            runs({**example, axis.name: size})
            for size in (exported[axis.name], axis.example + 1, axis.example - 1)
            if axis.takes(size) and size != axis.example
        )
    ]
    if not guilty:
        return None
    names = " and ".join(f"'{axis.name}'" for axis in guilty)
    numbers = " and ".join(f"`{axis.example}` in the place of `{axis.name}`" for axis in guilty)
    only = f"axis {names} takes its" if len(guilty) == 1 else f"axes {names} take their"
    return FoundRule(
        f"{only} example alone",
        f"write {numbers} in `dummy_inputs`, and take the axis out of `dynamic_axes`",
        fixed=tuple(guilty),
    )


def _least(axis: Axis, exported: Mapping[str, int], runs: Runs) -> FoundRule | None:
    """The least size of an axis at which forward runs, all others as exported."""
    step = axis.multiple_of
    fails, fits = axis.min // step, exported[axis.name] // step
    while fits - fails > 1:
        middle = (fails + fits) // 2
        if runs({**exported, axis.name: middle * step}):
            fits = middle
        else:
            fails = middle
    above = [n * step for n in range(fits, fits + 4) if axis.takes(n * step)]
    if not all(runs({**exported, axis.name: size}) for size in above):
        return None
    least = replace(axis, min=fits * step, example=max(axis.example, fits * step))
    return FoundRule(
        f"axis '{axis.name}' takes no size below {least.min}",
        f"write `{_written(least)}` in `dynamic_axes`",
        axes=(least,),
    )


def _stepped(axis: Axis, step: int) -> Axis:
    """`axis` with its sizes cut down to multiples; as it is where it has but one size, or none."""
    multiple = lcm(step, axis.multiple_of)
    most = axis.max // multiple * multiple
    least = -(-axis.min // multiple) * multiple
    if axis.min == axis.max or least > most or not most:
        return axis
    made = Axis(axis.name, least, most, axis.example, multiple)
    return replace(made, example=made.nearest(axis.example))


def _all_run(axes: Iterable[Axis], sums: Sequence[str], runs: Runs) -> bool:
    return all(runs(point.sizes) for point in probe_points(list(axes), sums)[:2])


def _written(axis: Axis) -> str:
    step = f", multiple_of: {axis.multiple_of}" if axis.multiple_of > 1 else ""
    return f"{axis.name}: {{min: {axis.min}, max: {axis.max}, example: {axis.example}{step}}}"


@dataclass(frozen=True, slots=True)
class AgreeingSizes:
    """Sizes of one axis that were tried, the other axes as exported.

    Attributes:
        axis: Name of the axis.
        right: Sizes at which the graph computes what PyTorch does, ascending.
        wrong: Sizes at which it does not, ascending.
    """

    axis: str
    right: tuple[int, ...]
    wrong: tuple[int, ...]

    @property
    def what(self) -> str:
        """Say it: `; of the sizes of 'batch' that were tried, the graph is right at 7 and ...`."""
        right = ", ".join(map(str, self.right)) or "none"
        wrong = ", ".join(map(str, self.wrong))
        tried = f"; of the sizes of '{self.axis}' that were tried"
        return f"{tried}, the graph is right at {right} and wrong at {wrong}"

    @property
    def fix(self) -> str:
        """Another way out, to follow a fix; empty where no size is right."""
        if not self.right:
            return ""
        size = self.right[len(self.right) // 2]
        axis = f"{self.axis}: {{min: {size}, max: {size}, example: {size}}}"
        return f"; or keep a size that is right: `dynamic_axes: {{{axis}}}`"


def try_sizes(axis: Axis, exported: Point, agrees: Callable[[Point], bool]) -> AgreeingSizes:
    """Try sizes around the exported one, its double, and the least.

    Args:
        axis: Axis whose sizes vary.
        exported: Point at which the graph was exported.
        agrees: Whether the graph computes what PyTorch does at a point.
    """
    own, step = exported.sizes[axis.name], axis.multiple_of
    near = (axis.min, own - step, own, own + step, own + 2 * step, 2 * own, 3 * own)
    sizes = sorted({size for size in near if axis.takes(size)})
    right = [s for s in sizes if agrees(Point(axis.name, {**exported.sizes, axis.name: s}))]
    return AgreeingSizes(axis.name, tuple(right), tuple(s for s in sizes if s not in right))


def only_axis(axes: Sequence[Axis], names: Sequence[str]) -> Axis | None:
    """The axis of the only name; None where there are more or none."""
    return next((each for each in axes if [each.name] == list(names)), None)
