"""Two arrays: how many elements differ, which first, and by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_CHUNK_ELEMENTS = 1 << 20
WIDEST = 60
"""Characters of a value in a message."""

NOT_FINITE = "some from or to NaN or infinity"
"""Words for differences without a largest one."""


@dataclass(frozen=True, slots=True)
class ArrayDifference:
    """Difference of two arrays of one dtype and shape.

    Attributes:
        count: Number of elements that differ in their bits.
        size: Number of elements in all.
        first: Index of the first element that differs.
        old: Its value in the one array, as text.
        new: Its value in the other array, as text.
        max_abs: Largest absolute difference; infinite with a NaN or an infinity on one side, None
            where elements are no numbers.
        max_rel: The same, as a share of the one array's largest magnitude; None where that is 0.
    """

    count: int
    size: int
    first: tuple[int, ...]
    old: str
    new: str
    max_abs: float | None
    max_rel: float | None


def array_difference(one: np.ndarray, other: np.ndarray) -> str:
    """Return how many elements differ, the first of them, and the largest difference.

    Returns: Empty if the arrays are equal.
    """
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{array_type(one)} -> {array_type(other)}"
    found = compare_arrays(one, other)
    if found is None:
        return ""
    return f"{array_type(one)}: {in_words(found)}"


def in_words(found: ArrayDifference) -> str:
    """Return how many elements differ, by how much at most, and the first of them."""
    both = f"{found.old} -> {found.new}"
    if found.max_abs is None:
        gap = ""
    elif math.isinf(found.max_abs):
        gap = f", {NOT_FINITE}" if found.count > 1 else ""
    else:
        gap = f", by at most {found.max_abs:.3g}"
    counts = f"{found.count:,} of {found.size:,} differ"
    return f"{counts}{gap}, the first at {list(found.first)}: {both}"


def compare_arrays(one: np.ndarray, other: np.ndarray) -> ArrayDifference | None:
    """Return how far two arrays of one dtype and shape are apart; None if they are equal.

    Elements are compared by their bits: -0.0 and 0.0, or two kinds of NaN, are different bytes of a
    file. Only chunks are held in memory as float64.
    """
    import numpy as np

    first, count, largest, magnitude = -1, 0, 0.0, 0.0
    has_numbers = one.dtype.kind not in "OSUTMm"
    ones, others = one.reshape(-1), other.reshape(-1)
    for start in range(0, ones.size, _CHUNK_ELEMENTS):
        left = np.ascontiguousarray(ones[start : start + _CHUNK_ELEMENTS])
        right = np.ascontiguousarray(others[start : start + _CHUNK_ELEMENTS])
        if has_numbers:
            magnitude = max(magnitude, _largest_magnitude(left))
        differs = _differing(left, right)
        if not differs.any():
            continue
        first = start + int(np.argmax(differs)) if first < 0 else first
        count += int(differs.sum())
        if has_numbers:
            largest = max(largest, _largest_gap(left[differs], right[differs]))
    if not count:
        return None
    texts = _elements(ones[first], others[first])
    return ArrayDifference(
        count=count,
        size=one.size,
        first=tuple(int(n) for n in np.unravel_index(first, one.shape)),
        old=texts[0],
        new=texts[1],
        max_abs=largest if has_numbers else None,
        max_rel=largest / magnitude if has_numbers and magnitude else None,
    )


def _differing(left: np.ndarray, right: np.ndarray) -> Any:
    """Return a mask of the elements whose bits differ."""
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

    if left.dtype.kind in "iu":  # float64 has too few digits for 64 bits
        gaps = np.maximum(left, right).astype(np.uint64) - np.minimum(left, right).astype(
            np.uint64
        )
        return float(gaps.max())
    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        distances = np.abs(left.astype(wide) - right.astype(wide))
    return float(np.where(np.isnan(distances), np.inf, distances).max())


def _largest_magnitude(values: np.ndarray) -> float:
    """The largest finite magnitude; 0 where there is none."""
    import numpy as np

    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    sizes = np.abs(values.astype(wide))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def array_type(array: np.ndarray) -> str:
    """An array's dtype and shape, for a message."""
    return f"{array.dtype} {list(array.shape)}"


def _elements(left: Any, right: Any) -> tuple[str, str]:
    items = [each.item() if hasattr(each, "item") else each for each in (left, right)]
    if all(isinstance(item, str) for item in items):
        return shown_apart(*items)
    one, other = (f"{item:.9g}" if isinstance(item, float) else shown(item) for item in items)
    return (one, other) if one != other else (shown(items[0]), shown(items[1]))


def shown_apart(old: str, new: str) -> tuple[str, str]:
    """Return two texts for a message; of long ones with one beginning, where they part."""
    texts = shown(old), shown(new)
    if texts[0] != texts[1] or old == new:
        return texts
    same, end = 0, min(len(old), len(new))
    while same < end:  # halves, so that slices are compared instead of characters
        middle = (same + end + 1) // 2
        if old[same:middle] == new[same:middle]:
            same = middle
        else:
            end = middle - 1
    return f"from {same:,} on {shown(old[same:])}", f"from {same:,} on {shown(new[same:])}"


def shown(value: object) -> str:
    """A value for a message; long ones are cut for the eye."""
    return cut(repr(value))


def cut(text: str) -> str:
    """The beginning of a text, as long as a message bears."""
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."
