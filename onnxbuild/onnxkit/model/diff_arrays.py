"""Where two arrays part, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_CHUNK_ELEMENTS = 1 << 20
_WIDEST = 60


def array_difference(one: np.ndarray, other: np.ndarray) -> str:
    """Return how many elements differ, the first of them, and the largest difference.

    Elements are compared by their bits: -0.0 and 0.0, or two kinds of NaN, are different bytes of a
    file. Only chunks are held in memory as float64.

    Returns: Empty if the arrays are equal.
    """
    import numpy as np

    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{_type(one)} -> {_type(other)}"
    first, count, largest = -1, 0, 0.0
    has_numbers = one.dtype.kind not in "OSUTMm"
    ones, others = one.reshape(-1), other.reshape(-1)
    for start in range(0, ones.size, _CHUNK_ELEMENTS):
        left = np.ascontiguousarray(ones[start : start + _CHUNK_ELEMENTS])
        right = np.ascontiguousarray(others[start : start + _CHUNK_ELEMENTS])
        differs = _differing(left, right)
        if not differs.any():
            continue
        first = start + int(np.argmax(differs)) if first < 0 else first
        count += int(differs.sum())
        if has_numbers:
            largest = max(largest, _largest_gap(left[differs], right[differs]))
    if not count:
        return ""
    index = [int(n) for n in np.unravel_index(first, one.shape)]
    both = f"{_element(ones[first])} -> {_element(others[first])}"
    gap = f", by at most {largest:.3g}" if has_numbers else ""
    return f"{_type(one)}: {count:,} of {one.size:,} differ{gap}, the first at {index}: {both}"


def _differing(left: np.ndarray, right: np.ndarray) -> Any:
    """Per element, whether the bits differ."""
    import numpy as np

    if left.dtype.hasobject:
        pairs = zip(left, right, strict=True)
        return np.fromiter((a != b for a, b in pairs), dtype=bool, count=left.size)
    shape = (-1, left.dtype.itemsize)
    differs: np.ndarray = left.view(np.uint8).reshape(shape) != right.view(np.uint8).reshape(shape)
    return differs.any(axis=1)


def _largest_gap(left: np.ndarray, right: np.ndarray) -> float:
    """The largest absolute difference; infinite where a NaN or an infinity stands on one side."""
    import numpy as np

    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(left.astype(wide) - right.astype(wide))
    return float(np.nan_to_num(gaps, nan=np.inf).max())


def _type(array: np.ndarray) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _element(value: Any) -> str:
    item = value.item() if hasattr(value, "item") else value
    return f"{item:.9g}" if isinstance(item, float) else shown(item)


def shown(value: object) -> str:
    """A value for a message; long ones are cut for the eye."""
    return cut(repr(value))


def cut(text: str) -> str:
    """The beginning of a text, as long as a message bears."""
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
