"""Default axes are written out, since onnx's strict shape inference refuses a node that leaves them to its schema."""

import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from onnxbuild.onnxkit.model.checker import checker_faults
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.ready_onnx.written_out import write_out_default_axes


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
