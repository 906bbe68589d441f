"""Weights of a graph, dense or sparse: their type, a digest of their elements, how far two of them are apart."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from onnxbuild.onnxkit.differences.arrays import ArrayDifference, compare_arrays
from onnxbuild.onnxkit.model.external_data import is_outside, weight_array
from onnxbuild.onnxkit.model.inspect import dtype_name

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Weight: TypeAlias = onnx.TensorProto | onnx.SparseTensorProto


def weight_type(weight: Weight) -> str:
    """Return a weight's type and shape: `float32 [64, 3]`, `sparse float32 [64, 3]`."""
    import onnx

    if isinstance(weight, onnx.SparseTensorProto):
        return f"sparse {dtype_name(weight.values.data_type)} {list(weight.dims)}"
    return f"{dtype_name(weight.data_type)} {list(weight.dims)}"


def weight_digest(weight: Weight) -> str:
    """Return a digest of a weight's type, shape and elements."""
    import numpy as np
    import onnx

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
    import numpy as np
    import onnx

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
    import numpy as np

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
