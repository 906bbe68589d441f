"""Differences of values: arrays element by element, attributes, weights."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.inspect import dtype_name
from onnxbuild.onnxkit.model.model_files import is_outside, weight_array

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
    if left.dtype.hasobject:
        pairs = zip(left, right, strict=True)
        return np.fromiter((a != b for a, b in pairs), dtype=bool, count=left.size)
    shape = (-1, left.dtype.itemsize)
    differs: np.ndarray = left.view(np.uint8).reshape(shape) != right.view(np.uint8).reshape(shape)
    return differs.any(axis=1)


def _largest_gap(left: np.ndarray, right: np.ndarray) -> float:
    """The largest absolute difference; infinite where a NaN or an infinity stands on one side."""
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


if TYPE_CHECKING:
    Weight: TypeAlias = onnx.TensorProto | onnx.SparseTensorProto


def weight_type(weight: Weight) -> str:
    """Return a weight's type and shape: `float32 [64, 3]`, `sparse float32 [64, 3]`."""
    if isinstance(weight, onnx.SparseTensorProto):
        return f"sparse {dtype_name(weight.values.data_type)} {list(weight.dims)}"
    return f"{dtype_name(weight.data_type)} {list(weight.dims)}"


def weight_digest(weight: Weight) -> str:
    """Return a digest of a weight's type, shape and elements."""
    if isinstance(weight, onnx.SparseTensorProto):
        places, array = _entries(weight)
    else:
        places, array = np.empty(0, np.int64), weight_array(weight)
    found = hashlib.blake2b(f"{weight_type(weight)} ".encode(), digest_size=16)
    found.update(places.tobytes())
    if array.dtype.hasobject:
        found.update(repr(array.tolist()).encode())
    else:
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def compare_weights(one: Weight, other: Weight) -> ArrayDifference | None:
    """Return how far two weights of one type and shape are apart; None if their elements are equal.

    A sparse one is never made dense: what neither of the two stores is 0 in both.

    Raises:
        ValueError: The indices of a sparse one do not fit its values or its shape.
    """
    if isinstance(one, onnx.TensorProto) and isinstance(other, onnx.TensorProto):
        return compare_arrays(weight_array(one), weight_array(other))
    assert isinstance(one, onnx.SparseTensorProto)
    assert isinstance(other, onnx.SparseTensorProto)  # of one type
    entries = _entries(one), _entries(other)
    places = np.union1d(entries[0][0], entries[1][0])
    filled = []
    for own, values in entries:
        array = np.zeros(places.size, values.dtype)
        array[np.searchsorted(places, own)] = values
        filled.append(array)
    found = compare_arrays(filled[0], filled[1])
    if found is None:
        return None
    shape = tuple(one.dims)
    first = np.unravel_index(places[found.first[0]], shape)
    return replace(found, size=math.prod(shape), first=tuple(int(n) for n in first))


def _entries(weight: onnx.SparseTensorProto) -> tuple[np.ndarray, np.ndarray]:
    """Places of the stored elements, as if the weight were flat, in order; and these elements."""
    name, shape = weight.values.name, tuple(weight.dims)
    if is_outside(weight.values) or is_outside(weight.indices):
        raise ValueError(f"sparse weight '{name}' is in a file, where ONNX has dense ones alone")
    values, indices = weight_array(weight.values), weight_array(weight.indices)
    if indices.ndim == 2:  # noqa: PLR2004 - a row of coordinates for each element
        indices = np.asarray(np.ravel_multi_index(tuple(indices.T), shape))
    if indices.shape != values.shape or np.unique(indices).size != indices.size:
        raise ValueError(f"the indices of sparse weight '{name}' do not fit its values")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < math.prod(shape):
        raise ValueError(f"an index of sparse weight '{name}' is outside of its shape")
    order = np.argsort(indices)
    return indices[order], values[order]


_TYPES = ("to", "dtype")
"""Attributes of Cast, RandomNormal and others that name a type by its number."""


@dataclass(frozen=True, slots=True)
class AttributeChanged:
    """An attribute of a node that is in both graphs.

    Attributes:
        node: Its label in the one graph.
        name: Name of the attribute; `name[2]` for one of several tensors.
        old: Value as text; its type and shape if it is too long for a message. Empty if it is new.
        new: The other's value, likewise; empty if it is gone.
        values: Difference of the two values, if `old` and `new` are one type and shape; else None.
    """

    node: str
    name: str
    old: str
    new: str
    values: ArrayDifference | None = None


@dataclass(frozen=True, slots=True)
class _FromFunction:
    """The value is that of the function's attribute of this name."""

    name: str


def attribute_changes(
    ones: Iterable[onnx.AttributeProto], others: Iterable[onnx.AttributeProto], node: str
) -> Iterator[AttributeChanged]:
    """Yield what differs between the attributes of two nodes; two subgraphs are not looked into.

    Args:
        ones: Attributes of the one node.
        others: Attributes of the other.
        node: Label of the node, for messages.
    """
    olds, news = dict(_values(ones)), dict(_values(others))
    for name in dict.fromkeys((*olds, *news)):
        if name not in news:
            yield AttributeChanged(node, name, _text(name, olds[name]), "")
        elif name not in olds:
            yield AttributeChanged(node, name, "", _text(name, news[name]))
        else:
            found = _change(node, name, olds[name], news[name])
            if found is not None:
                yield found


def _values(attributes: Iterable[onnx.AttributeProto]) -> Iterator[tuple[str, Any]]:
    """(name, value) of each: lists of numbers and text as arrays, tensors of a list one by one."""
    kinds = onnx.AttributeProto
    for each in attributes:
        if each.ref_attr_name:
            yield each.name, _FromFunction(each.ref_attr_name)
        elif each.type == kinds.FLOATS:
            yield each.name, np.array(each.floats, np.float32)
        elif each.type == kinds.INTS:
            yield each.name, np.array(each.ints, np.int64)
        elif each.type == kinds.STRINGS:
            texts: np.ndarray = np.empty(len(each.strings), object)
            texts[:] = [_decoded(text) for text in each.strings]
            yield each.name, texts
        else:
            value = onnx.helper.get_attribute_value(each)
            if isinstance(value, list):
                yield from ((f"{each.name}[{n}]", item) for n, item in enumerate(value))
            else:
                yield each.name, value


def _change(node: str, name: str, old: Any, new: Any) -> AttributeChanged | None:
    graph = onnx.GraphProto
    if isinstance(old, graph) and isinstance(new, graph):
        return None
    texts = _text(name, old), _text(name, new)
    weights = onnx.TensorProto, onnx.SparseTensorProto
    values = None
    if isinstance(old, weights) and isinstance(new, weights):
        if weight_type(old) == weight_type(new):
            values = compare_weights(old, new)
            if values is None:
                return None  # written in another way
    elif isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if _list_type(old) == _list_type(new):
            values = compare_arrays(old, new)
            if values is None:
                return None
    elif type(old) is type(new) and old == new:
        return None
    elif isinstance(old, bytes) and isinstance(new, bytes) and max(map(len, (old, new))) > WIDEST:
        texts = shown_apart(_decoded(old), _decoded(new))
    is_shown = texts[0] != texts[1]
    return AttributeChanged(node, name, *texts, None if is_shown else values)


def _text(name: str, value: Any) -> str:
    """A value; type and shape alone where it is long."""
    if isinstance(value, _FromFunction):
        return f"the function's {value.name}"
    if isinstance(value, onnx.TensorProto):
        array = weight_array(value)
        own = weight_type(value)
        return f"{own} {array.tolist()!r}" if _is_short(array) else own
    if isinstance(value, onnx.SparseTensorProto):
        return weight_type(value)
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if _is_short(value) else _list_type(value)
    if isinstance(value, onnx.GraphProto):
        count = len(value.node)
        return f"a graph of {count} node{'s' if count != 1 else ''}"
    if isinstance(value, onnx.TypeProto):
        return str(onnx.helper.printable_type(value))
    if name in _TYPES and isinstance(value, int):
        return dtype_name(value)
    if isinstance(value, bytes):
        return cut(_decoded(value))
    return shown(value)


def _is_short(array: Any) -> bool:
    """Return whether all elements fit in a message."""
    return array.size < WIDEST and len(repr(array.tolist())) <= WIDEST


def _list_type(array: Any) -> str:
    return f"{'string' if array.dtype.hasobject else array.dtype} {list(array.shape)}"


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
