"""Sparse weights of a ready ONNX file are written out."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxbuild.onnxkit.ready_onnx.written_out import write_out_sparse_weights
from tests.onnxkit.models import model, value


def sparse(places):
    """A product with three weights that are not 0."""
    made = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["n", 4])],
        [value("y", ["n", 2])],
    )
    values = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    indices = numpy_helper.from_array(np.array(places, np.int64), "w_places")
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4, 2]))
    return made


@pytest.mark.parametrize("places", [[0, 5, 7], [[0, 0], [2, 1], [3, 1]]])
def test_sparse_weights_become_dense_ones_at_their_places(places):
    made = sparse(places)
    write_out_sparse_weights(made)
    (weight,) = made.graph.initializer
    assert weight.name == "w"
    assert numpy_helper.to_array(weight).tolist() == [[1, 0], [0, 0], [0, 2], [0, 3]]
    assert not made.graph.sparse_initializer
    onnx.shape_inference.infer_shapes(made, strict_mode=True)


def test_sparse_weights_in_another_file_stay():
    made = sparse([0, 5, 7])
    made.graph.sparse_initializer[0].values.data_location = onnx.TensorProto.EXTERNAL
    write_out_sparse_weights(made)
    assert len(made.graph.sparse_initializer) == 1
