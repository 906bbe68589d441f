"""Values that random dummies hardly ever have: rows of the least and the greatest value, an empty text, zeros, other scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds, is_free, make_feeds, value_range
from onnxbuild.onnxkit.data.reference_files import (
    UNUSUAL,
    MovedRows,
    ReferencePoint,
    ReferenceWriter,
)
from onnxbuild.onnxkit.model.tensor_types import STRING

if TYPE_CHECKING:
    import numpy as np

_SCALES = (100.0, 0.01)


def extreme_rows(
    inputs: Sequence[DummyInput], sizes: Mapping[str, int], seed: str
) -> Iterator[Feeds]:
    """Yield feeds whose first row has the least values that are declared (False, an empty text), all others the greatest; and the other way round.

    Inputs without a range are drawn. Yields nothing where all are.

    Args:
        inputs: Inputs, as the recipe declares them.
        sizes: Axis -> size.
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
        sizes: Axis -> size.
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
        sizes: Axis -> size.
        run: Run the model.
        moved: Find the rows on a threshold; None where the model has none.
        rounding: How far rounding alone moves outputs.
    """
    import numpy as np

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
