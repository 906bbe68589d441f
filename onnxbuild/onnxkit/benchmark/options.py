"""Options of a recipe's section `benchmark`, and the points at which it measures, checked and expanded."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.axis import Point, example_sizes
from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.calibration_data import read_texts, text_array
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """Points, contenders and duration of the benchmark."""

    points: tuple[dict[str, int | tuple[int, ...]], ...] = option(
        (),
        help="points to measure at, axis to size or to several sizes (`{batch: [1, 8], sequence: "
        "128}` are two); empty: the example alone",
    )
    tokens: int = option(
        0,
        sparse=True,
        help="tokens of a text to measure, too, after each point without a past (`{sequence: 16, past: 0}`): greedily, each "
        "call with the state that the last one left; 0: none",
        minimum=0,
    )
    threads: int = option(
        0,
        help="threads of each runtime, where `session` sets none for a variant; 0: all the cores "
        "this process may use",
        minimum=0,
    )
    warmup: int = option(3, help="first runs of each model, not counted", minimum=0)
    measure: bool = option(
        True, help="measure the variants; false: no latency, as `onnxbuild run --no-bench` builds"
    )
    min_samples: int = option(
        20, help="samples of each before it may end earlier than max_time_s", minimum=3
    )
    max_time_s: float = option(
        3.0,
        help="seconds of measuring each variant at each point, at most; up to four times as long where six runs do not fit. Each is first loaded and "
        "run in a process of its own, for its load time and memory",
        minimum=0.1,
    )
    baseline: bool = option(
        True,
        help="measure the model as its own framework runs it, too: eager PyTorch, scikit-learn, "
        "TensorFlow, JAX, an ONNX file as it was given",
    )
    compile: bool = option(
        False, help="measure PyTorch with torch.compile, too (compiling takes a while)"
    )
    clients: tuple[int, ...] = option(
        (),
        help="numbers of client threads, to measure the throughput of variants and programs",
        minimum=1,
    )
    sessions: Literal["one", "each"] = option(
        "one",
        help="whether clients share one session, or have one each with its share of the threads "
        "(programs of PyTorch: one each, and the threads are the process's)",
    )
    io_binding: bool = option(
        False,
        help="measure each variant with inputs and outputs bound to its device, too (PyTorch programs "
        "take tensors where they are: there is nothing to bind)",
    )
    measured_on: Literal["this-machine", "any"] = option(
        "this-machine",
        key="from",
        sparse=True,
        help="whose measurements count: `this-machine`, or one with the same processor, cores, libraries and drivers; or "
        "`any`: what another machine measured is taken from a shared store, and the table says where that was",
    )


Sizes = Mapping[str, int | Sequence[int]]
"""Axis -> a size, or several."""


def benchmark_points(
    axes: Sequence[Axis], wanted: Sequence[Sizes], where: str
) -> tuple[Point, ...]:
    """Points with one size an axis; several sizes are combined in all ways, others are the example's.

    Args:
        wanted: Points of the recipe; empty for the example alone.
        where: `recipe:step`, for messages.

    Raises:
        StepError: There is no such axis, or a size is outside it.
    """
    example = example_sizes(axes)
    bounds = {axis.name: axis for axis in axes}
    points: dict[str, Point] = {}
    for sizes in _single(wanted):
        for axis, size in sizes.items():
            if axis not in example:
                raise StepError(
                    f"`benchmark.points` names the axis '{axis}'; expected "
                    f"{', '.join(example) or 'none'}",
                    where=where,
                    fix=did_you_mean(axis, example) or "declare it in `dynamic_axes`",
                )
            if not bounds[axis].takes(size):
                raise StepError(
                    f"`benchmark.points` has {axis}={size}; `dynamic_axes` allows "
                    f"{bounds[axis].rule}",
                    where=where,
                    fix=f"write `{bounds[axis].nearest(size)}`, or widen the axis",
                )
        filled = {**example, **sizes}
        name = ",".join(f"{axis}={size}" for axis, size in filled.items()) or "fixed"
        points[name] = Point(name, filled)
    return tuple(points.values())


def measured_points(
    axes: Sequence[Axis],
    wanted: Sequence[Sizes],
    fixed: Mapping[str, Mapping[str, int]],
    where: str,
) -> tuple[Point, ...]:
    """The points that some model takes, where some take one size of an axis alone.

    Where the recipe names no points, the example with each model's fixed sizes in it is one.

    Args:
        wanted: Points of the recipe; empty for the example alone.
        fixed: Model -> axis -> the one size that it takes; at least one model.
        where: `recipe:step`, for messages.

    Raises:
        StepError: As `benchmark_points`; or a model takes none of the points.
    """
    points = benchmark_points(axes, wanted or ({}, *fixed.values()), where)
    for name, sizes in fixed.items():
        if not any(takes(sizes, point) for point in points):
            shown = ", ".join(f"{axis}={size}" for axis, size in sizes.items())
            raise StepError(
                f"variant '{name}' takes {shown} alone (`session.free_dimensions`), which is at "
                f"none of the points {'; '.join(point.name for point in points)}",
                where=where,
                fix=f"add `{{{shown.replace('=', ': ')}}}` to `benchmark.points`",
            )
    return tuple(point for point in points if any(takes(sizes, point) for sizes in fixed.values()))


def point_feeds(
    context: StepContext,
    point: Point,
    inputs: Sequence[DummyInput],
    texts: Mapping[str, Entrypoint],
) -> Feeds:
    """Dummy inputs at a point; lines of a file where `texts` names one for an input."""
    made = make_feeds(inputs, point.sizes, seed=0)
    for name, entrypoint in texts.items():
        lines = read_texts(*context.files(entrypoint)[0], context.where)
        made[name] = text_array(lines, made[name].size).reshape(made[name].shape)
    return made


def takes(fixed: Mapping[str, int], point: Point) -> bool:
    """Return whether a model whose axes have these sizes alone runs at a point."""
    return all(point.sizes.get(axis, size) == size for axis, size in fixed.items())


def _single(wanted: Sequence[Sizes]) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    for sizes in wanted or ({},):
        choices = [(each,) if isinstance(each, int) else tuple(each) for each in sizes.values()]
        found += [dict(zip(sizes, each, strict=True)) for each in itertools.product(*choices)]
    return found
