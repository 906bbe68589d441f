"""Find the sizes that a module takes by running it, where it failed at one that it should take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import lcm

from onnxbuild.core.axis import Axis, Dimension, Point, example_sizes, sums_of, symbols_of
from onnxbuild.onnxkit.data.completed_axes import FoundRule
from onnxbuild.onnxkit.export.test_sizes import axis_by_axis, export_sizes, probe_points

_STEPS = (2, 3, 4, 6, 7, 8, 12, 14, 16, 24, 28, 32, 64, 128)
"""Products of strides, patch sizes and window sizes as networks have them, the least first."""

Runs = Callable[[Mapping[str, int]], bool]


def find_rule(
    axes: Sequence[Axis], shapes: Sequence[Sequence[Dimension]], point: Point, runs: Runs
) -> FoundRule | None:
    """The rule of the axes that explains why forward fails at a probe point.

    Args:
        axes: Axes, as declared.
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
        axes: Axes, as declared.
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
