"""The user's data with labels: a batch each, or arrays of all samples, which are cut into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from onnxbuild.core.axis import is_sum
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feeds import Feeds, check_feeds
from onnxbuild.onnxkit.data.user_code import an, call_data, items_of
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import counted


def count_rows(value: Any) -> int | None:
    """Return the number of rows along a value's first axis; None if it has no such axis."""
    if hasattr(value, "_fields"):  # a named tuple holds parts of a label, not samples
        return None
    if isinstance(value, (list, tuple)):
        return len(value)
    shape = getattr(value, "shape", ())
    return int(shape[0]) if shape and hasattr(value, "__getitem__") else None


def take_rows(value: Any, rows: np.ndarray) -> Any:
    """Return the rows of these numbers, in a value of the same type."""
    if isinstance(value, (list, tuple)):
        return type(value)(value[int(row)] for row in rows)
    if hasattr(value, "iloc"):  # pandas: `value[rows]` takes the rows, or columns, of these names
        return value.iloc[rows]
    return value[rows]


_ROWS = 32
"""Rows of a batch that is cut from all samples, where the model takes as many."""


def labelled_batches(
    context: StepContext,
    data: Entrypoint,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    samples: int = 0,
) -> Iterator[tuple[Feeds, object]]:
    """(checked feeds, labels), a batch at a time; `samples` of them at most, 0 for all.

    Raises:
        StepError: The callable raises, or an item is no pair or not what the recipe declares.
    """
    found: Any = call_data(context, data)
    items: Iterable[Any]
    if _is_pair(found) and isinstance(found[0], Mapping):
        items = cut_into_batches(
            found[0], found[1], inputs, axes, f"{context.where} ({data.target})"
        )
    else:
        items = items_of(found, context, data)
    item: Any
    for n, item in enumerate(counted(islice(items, samples or None), "items", samples)):
        place = f"{context.where} ({data.target}, item {n})"
        if not _is_pair(item):
            raise StepError(
                f"found {an(item)}; expected a pair (feeds, labels)",
                where=place,
                fix=f"yield {{{', '.join(f'{each.name!r}: ...' for each in inputs)}}}, labels for each "
                "batch, or return one such pair with arrays of all samples",
            )
        yield check_feeds(item[0], inputs, place), item[1]


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2  # noqa: PLR2004 - a pair


def cut_into_batches(
    feeds: Mapping[str, Any],
    labels: Any,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    where: str,
) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield batches of arrays that hold all samples along their first axis, each with its labels.

    Args:
        feeds: Input name -> array. An input whose first axis is not that of the batch is given whole to each.
        labels: An array or a list with a row for each sample, or a mapping of name -> such.
        inputs: As the recipe declares them.
        where: Step and callable, for messages.

    Raises:
        StepError: Arrays or labels hold different numbers of samples, or no batch fits the rest of them.
    """
    arrays = {
        name: each if hasattr(each, "ndim") else np.asarray(each) for name, each in feeds.items()
    }
    if set(arrays) != {each.name for each in inputs}:
        check_feeds(arrays, inputs, where)  # it raises: names are wrong
    stacked = all(arrays[each.name].ndim == len(each.shape) + 1 for each in inputs)
    firsts = [each.shape[0] for each in inputs if each.shape]
    leading = next((each for each in firsts if isinstance(each, str)), firsts[0] if firsts else 1)
    cut = [each.name for each in inputs if stacked or (each.shape and each.shape[0] == leading)]
    counts = {f"'{name}'": count_rows(arrays[name]) for name in cut}
    parts = dict(labels) if isinstance(labels, Mapping) else {"": labels}
    counts |= {
        f"labels '{name}'" if name else "labels": count_rows(each) for name, each in parts.items()
    }
    (count, *others) = dict.fromkeys(counts.values())
    if others or count is None:
        shown = ", ".join(f"{name} {'no axis' if n is None else n}" for name, n in counts.items())
        raise StepError(
            f"the arrays hold different numbers of samples along their first axis: {shown}",
            where=where,
            fix="return one row of each array, and one label, for each sample, or yield "
            "(feeds, labels) for each batch",
        )
    size = 1 if stacked else _batch_size(leading, axes)
    if not stacked and isinstance(leading, int) and count % leading:
        raise StepError(
            f"the model takes {leading} samples at a time, and {count} are no multiple of it",
            where=where,
            fix=f"return {count - count % leading} samples",
        )
    for start in range(0, count, size):
        rows = np.arange(start, min(start + size, count))
        batch = {
            name: each if name not in cut else each[start] if stacked else each[rows]
            for name, each in arrays.items()
        }
        taken = {name: take_rows(each, rows) for name, each in parts.items()}
        yield batch, taken if isinstance(labels, Mapping) else taken[""]


def _batch_size(leading: int | str, axes: Sequence[Axis]) -> int:
    if isinstance(leading, int) or is_sum(leading):
        return leading if isinstance(leading, int) else _ROWS
    known = [axis.nearest(min(_ROWS, axis.max)) for axis in axes if axis.name == leading]
    return next(iter(known), _ROWS)
