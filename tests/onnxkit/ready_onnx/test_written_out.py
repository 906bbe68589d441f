"""What ONNX's own tools would refuse is written out: default axes, sparse weights, locales."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node, make_opsetid
from onnx.reference import ReferenceEvaluator

from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from onnxbuild.onnxkit.ready_onnx.written_out import (
    settle_locales,
    write_out_default_axes,
    write_out_sparse_weights,
)
from tests.onnxkit.models import model, value


def _model(opset: int, **attributes: list[int]) -> onnx.ModelProto:
    shape = ["batch", 3, 4, 4]
    graph = helper.make_graph(
        [helper.make_node("MeanVarianceNormalization", ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("opset", [13, 18, 23])
def test_a_node_without_axes_passes_the_check_and_computes_what_it_did(tmp_path, opset):
    import numpy as np

    made = _model(opset)
    x = np.arange(96, dtype=np.float32).reshape(2, 3, 4, 4) ** 1.5
    (before,) = ReferenceEvaluator(made).run(None, {"x": x})
    write_out_default_axes(made)
    save_model(made, tmp_path / "model")
    assert checker_faults(tmp_path / "model", tmp_path) == []
    (after,) = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_array_equal(after, before)


def test_axes_that_a_node_has_stay():
    made = _model(18, axes=[2, 3])
    write_out_default_axes(made)
    assert made == _model(18, axes=[2, 3])


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


TEXTS = np.array(["\u00c0B", "Cd"], object)


@pytest.mark.parametrize("locale", [{}, {"locale": "en_US"}, {"locale": "en_US.UTF-8"}])
def test_the_default_locale_gives_way_to_one_that_is_there(locale):
    made = lowering(**locale)
    settle_locales(made)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    assert session.run(None, {"x": TEXTS})[0].tolist() == ["\u00e0b", "cd"]


def test_a_locale_of_the_file_s_own_stays():
    made = lowering(locale="C")
    settle_locales(made)
    assert made == lowering(locale="C")


def lowering(**attributes):
    node = make_node(
        "StringNormalizer", ["x"], ["y"], case_change_action="LOWER", is_case_sensitive=1,
        **attributes,
    )  # fmt: skip
    ends = [value("x", ["n"], TensorProto.STRING)], [value("y", ["m"], TensorProto.STRING)]
    return model([node], *ends, imports=[make_opsetid("", 17)])
