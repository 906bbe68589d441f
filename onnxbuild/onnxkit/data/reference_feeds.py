"""The feeds that a reference is computed on: dummy inputs at seeded points that fit in memory, unusual values, then real samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from pathlib import Path

from onnxbuild.core.axis import Point, example_sizes, reference_points, shape_at
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import PIPELINE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.core.sizes import size_text
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feeds import (
    Feeds,
    check_feeds,
    is_free,
    make_feeds,
    sizes_of,
    value_range,
)
from onnxbuild.onnxkit.data.recorded_calls import recorded_feeds
from onnxbuild.onnxkit.data.reference_files import (
    UNUSUAL,
    MovedRows,
    ReferencePoint,
    ReferenceWriter,
)
from onnxbuild.onnxkit.data.states import decoding_points
from onnxbuild.onnxkit.data.user_code import call_entrypoint, call_user, own_copy
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.tensor_types import STRING

MOST_BYTES = 1 << 30
"""Values that a model may hold at once at a point that the recipe does not name. The runtimes take two to
three times that: they keep blocks for later, and work space."""

_CHOSEN = ("max-", "between")
"""Beginnings of the names of points whose sizes are chosen, not written."""

_ATTEMPTS = 12


@dataclass(slots=True)
class FittingPoints:
    """Chosen points made smaller until a model's values fit.

    Attributes:
        inputs: Inputs, as the recipe declares them.
        axes: The dynamic axes.
        measure: Sizes -> the bytes that the model holds at once there; None where that can't be known.
        most_bytes: How many it may hold.
        notes: What was made smaller, one line each.
    """

    inputs: Sequence[DummyInput]
    axes: Sequence[Axis]
    measure: Callable[[Mapping[str, int]], int | None]
    most_bytes: int = MOST_BYTES
    notes: list[str] = field(default_factory=list)
    _at_example: int | None = field(default=None, init=False)

    def fitted(self, point: Point) -> Point | None:
        """Return a point at which the model's values fit; None where only the example's sizes are left."""
        if not point.name.startswith(_CHOSEN) or self._surely_fits(point.sizes):
            return point
        sizes, first = dict(point.sizes), None
        for _ in range(_ATTEMPTS):
            needed = self.measure(sizes)
            first = first or needed
            if needed is None or needed <= self.most_bytes or not self._shrink(sizes):
                break
        if sizes == dict(point.sizes):
            return point
        self.notes.append(self._note(point, sizes, first or 0))
        return None if sizes == example_sizes(self.axes) else Point(point.name, sizes)

    def _surely_fits(self, sizes: Mapping[str, int]) -> bool:
        """Return whether even values that grow with the square of the inputs fit."""
        example = example_sizes(self.axes)
        if self._at_example is None:
            self._at_example = self.measure(example) or 0
        grown = self._elements(sizes) / max(1, self._elements(example))
        return self._at_example * max(1.0, grown) ** 2 <= self.most_bytes

    def _elements(self, sizes: Mapping[str, int]) -> int:
        return sum(prod(shape_at(each.shape, sizes)) for each in self.inputs)

    def _shrink(self, sizes: dict[str, int]) -> bool:
        """Halve the axis that is farthest above its example; returns whether one is."""
        above = [axis for axis in self.axes if sizes[axis.name] > axis.example]
        if not above:
            return False
        axis = max(above, key=lambda each: sizes[each.name] / each.example)
        half = axis.nearest(sizes[axis.name] // 2)
        sizes[axis.name] = max(axis.example, half if half < sizes[axis.name] else axis.example)
        return True

    def _note(self, point: Point, sizes: Mapping[str, int], needed: int) -> str:
        changed = [name for name in sizes if sizes[name] != point.sizes[name]]
        tried = ", ".join(f"{name}={sizes[name]}" for name in changed)
        wanted = ", ".join(f"{name}={point.sizes[name]}" for name in changed)
        written = ", ".join(f"{name}: {point.sizes[name]}" for name in changed)
        return (
            f"point '{point.name}' is tried at {tried}: at {wanted} the model would hold {size_text(needed)} of values "
            f"at once; to try that all the same, write `reference: {{points: [{{{written}}}]}}`"
        )


SAMPLE = "sample-"
"""Begins the names of points that are real samples."""


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """Inputs on which the variants are compared with PyTorch."""

    seed: int = option(0, help="seeds the dummy inputs", minimum=0)
    points: tuple[dict[str, int], ...] = option(
        (), help="more points, each a mapping of axis to size; axes left out are at their example"
    )
    max_samples: int = option(16, help="how many of the real samples are used", minimum=1)


def reference_feeds(
    context: StepContext,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    *,
    points: Sequence[Mapping[str, int]],
    seed: int,
    samples: Entrypoint | None,
    max_samples: int,
    fitting: FittingPoints | None = None,
) -> Iterator[tuple[str, Mapping[str, int], Feeds]]:
    """Yield (name, sizes, feeds) of the seeded points, then of the real samples.

    Args:
        inputs: Inputs, as the recipe declares them.
        points: The user's own, besides those that every reference has.
        seed: Seed of the dummy inputs.
        samples: A callable that yields feeds; None for none.
        max_samples: Number of samples to use at most.
        fitting: Makes points smaller where the model's values would not fit into memory; None takes them all.

    Raises:
        StepError: The callable yields nothing, or a sample is not as declared.
    """
    every = (*reference_points(axes, points, seed), *decoding_points(inputs, axes))
    for each in counted(every, "points", doing=lambda point: f"running at {point.shown}"):
        point = each if fitting is None else fitting.fitted(each)
        if point is None:
            continue
        yield point.name, point.sizes, make_feeds(inputs, point.sizes, f"{seed}:{point.name}")
    if samples is not None:
        yield from sample_feeds(context, inputs, axes, samples, max_samples)


def sample_feeds(
    context: StepContext,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    samples: Entrypoint,
    max_samples: int,
) -> Iterator[tuple[str, Mapping[str, int], Feeds]]:
    """Yield (name, sizes, feeds) of the real samples; arguments and errors as of `reference_feeds`."""
    given = (
        list(recorded_feeds(context, samples, max_samples))
        if samples.target == PIPELINE_DATA
        else _samples(context, samples, max_samples)
    )
    for n, found in enumerate(counted(given, "samples")):
        where = f"{context.where} ({samples.target}, sample {n})"
        feeds = check_feeds(found, inputs, where, axes)
        yield f"{SAMPLE}{n:02}", sizes_of(feeds, inputs, where), feeds


def _samples(context: StepContext, entrypoint: Entrypoint, most: int) -> list[object]:
    owner = "the samples'"
    made = call_entrypoint(context.load(entrypoint), entrypoint, context.where, owner=owner)

    def collect() -> list[object] | None:
        wrong = isinstance(made, Mapping) or not isinstance(made, Iterable)
        return None if wrong else [own_copy(each) for each in islice(made, most)]

    found = call_user(collect, entrypoint.target, context.where, owner=owner)
    if not found:
        problem = "yields no sample" if found is not None else "does not return an iterable"
        raise StepError(
            f"{entrypoint.target} {problem}",
            where=context.where,
            fix="yield mappings of input name -> array, one a sample",
        )
    return found


_SCALES = (100.0, 0.01)


def extreme_rows(
    inputs: Sequence[DummyInput], sizes: Mapping[str, int], seed: str
) -> Iterator[Feeds]:
    """Yield feeds whose first row has the least values that are declared (False, an empty text), all others the greatest; and the other way round.

    Inputs without a range are drawn. Yields nothing where all are.

    Args:
        inputs: Inputs, as the recipe declares them.
        seed: Seeds what is drawn.
    """
    drawn = make_feeds(inputs, sizes, seed)
    ranges = {each.name: value_range(each) for each in inputs if is_free(each)}
    texts = [each.name for each in inputs if each.dtype == STRING and drawn[each.name].size]
    known = {name: ends for name, ends in ranges.items() if ends is not None}
    for first, others in ((0, 1), (1, 0)) if known or texts else ():
        rows: Feeds = {}
        for name, ends in known.items():
            rows[name] = array = drawn[name].copy()
            array[...] = ends[others]
            _first_row(array)[...] = ends[first]
        for name in texts:
            rows[name] = drawn[name].copy()
            rows[name].reshape(-1)[0 if first == 0 else -1] = ""
        yield drawn | rows


def scaled_feeds(
    inputs: Sequence[DummyInput], sizes: Mapping[str, int], seed: str
) -> Iterator[tuple[float, Feeds]]:
    """Yield a factor, and feeds whose floats without a declared range are scaled by it; 0 is one.

    Args:
        inputs: Inputs, as the recipe declares them.
        seed: Seeds what is drawn.
    """
    drawn = make_feeds(inputs, sizes, seed)
    scaled = [each.name for each in inputs if is_free(each) and value_range(each) is None]
    for factor in (*_SCALES, 0.0) if scaled else ():
        yield factor, drawn | {n: (drawn[n] * factor).astype(drawn[n].dtype) for n in scaled}


def write_unusual(
    reference: Path,
    inputs: Sequence[DummyInput],
    sizes: Mapping[str, int],
    run: Callable[[Feeds], Mapping[str, np.ndarray]],
    *,
    moved: Callable[[Feeds], MovedRows | None] | None = None,
    rounding: Callable[[Mapping[str, np.ndarray]], Mapping[str, float]] = lambda _: {},
) -> None:
    """Write points of extreme rows next to a reference's others; rows that the model refuses, or has NaN for, are left out.

    Args:
        reference: Folder of the reference.
        inputs: Inputs, as the recipe declares them.
        moved: Find the rows on a threshold; None where the model has none.
        rounding: How far rounding alone moves outputs.
    """
    found = []
    for n, feeds in enumerate(extreme_rows(inputs, sizes, "unusual")):
        try:
            outputs = run(feeds)
        except StepError:
            continue
        if not any(each.dtype.kind == "f" and np.isnan(each).any() for each in outputs.values()):
            name, near = f"extreme-rows-{n}", None if moved is None else moved(feeds)
            rows = None if near is None else near.mask(len(next(iter(feeds.values()))))
            found.append(
                ReferencePoint(
                    name, sizes, feeds, outputs, rows, moved=near, rounding=rounding(outputs)
                )
            )
    if found:
        (reference / UNUSUAL).mkdir()
        writer = ReferenceWriter(reference / UNUSUAL)
        for point in found:
            writer.add(point)
        writer.finish()


def _first_row(array: np.ndarray) -> np.ndarray:
    """The first row, a view; all of it where there is no other."""
    return array[:1] if array.ndim > 1 and len(array) > 1 else array[...]
