import numpy as np
import onnx
import pytest
from onnx.helper import make_node

from onnxbuild.onnxkit.export.exporters import has_narrow_weights, optimize_graph
from tests.late_imports import Late
from tests.onnxkit.models import model, value, weight

torch = Late("torch")
onnx_ir = Late("onnx_ir")
BYTES = np.ones((64, 64), np.int8)


@pytest.mark.parametrize(
    ("node", "weights"),
    [
        (make_node("Cast", ["a"], ["w"], to=1), [weight("a", BYTES)]),
        (
            make_node("Expand", ["a", "b"], ["w"]),
            [weight("a", np.float32(1)), weight("b", np.array([64, 64]))],
        ),
        (make_node("ConstantOfShape", ["a"], ["w"]), [weight("a", np.array([64, 64]))]),
    ],
)
def test_what_would_be_larger_stays_computed(node, weights):
    made = folded([node], weights)
    assert [each.op_type for each in made.node] == [node.op_type, "MatMul"]


def test_what_is_no_larger_is_folded():
    turned = make_node("Transpose", ["a"], ["w"])
    made = folded([turned], [weight("a", np.ones((64, 64), np.float32))])
    assert [each.op_type for each in made.node] == ["MatMul"]


def folded(nodes, weights):
    ends = [value("x", ["batch", 64])], [value("y", ["batch", 64])]
    given = onnx_ir.serde.deserialize_model(
        model([*nodes, make_node("MatMul", ["x", "w"], ["y"])], *ends, weights)
    )
    optimize_graph(given)
    made = onnx_ir.serde.serialize_model(given)
    onnx.checker.check_model(made)
    return made.graph


def test_narrow_weights_are_those_that_32_bits_would_make_larger():
    module = torch.nn.Linear(8, 8)
    assert not has_narrow_weights(module)
    module.register_buffer("mask", torch.ones(2048, dtype=torch.bool))
    module.register_buffer("places", torch.arange(2048))
    assert not has_narrow_weights(module)
    module.register_buffer("w8", torch.ones(2048, dtype=torch.int8))
    assert has_narrow_weights(module)
