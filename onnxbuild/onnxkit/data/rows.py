"""Rows of values that hold samples: arrays, tensors, lists, data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


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
