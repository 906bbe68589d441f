"""Write sparse weights out, in place: ONNX's shape inference does not know them, and ONNX Runtime writes them out too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_graphs

if TYPE_CHECKING:
    import numpy as np
    import onnx

_EXTERNAL = 1
"""TensorProto.EXTERNAL: the values are in another file."""


def write_out_sparse_weights(model: onnx.ModelProto) -> None:
    """Put a dense initializer of the same name in place of each sparse one.

    Args:
        model: Sparse weights whose values are in another file stay as they are.
    """
    from onnx import numpy_helper

    for graph in all_graphs(model):
        left = []
        for each in graph.sparse_initializer:
            if _EXTERNAL in (each.values.data_location, each.indices.data_location):
                left.append(each)
            else:
                graph.initializer.append(numpy_helper.from_array(_dense(each), each.values.name))
        if len(left) < len(graph.sparse_initializer):
            del graph.sparse_initializer[:]
            graph.sparse_initializer.extend(left)


def _dense(tensor: onnx.SparseTensorProto) -> np.ndarray:
    """Its values at their places, zeros elsewhere; places are counted through, or a row of coordinates each."""
    import numpy as np
    from onnx import numpy_helper

    values, places = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
    found: np.ndarray = np.zeros(tuple(tensor.dims), values.dtype)
    if places.ndim == 1:
        found.reshape(-1)[places] = values
    else:
        found[tuple(places.T)] = values
    return found
