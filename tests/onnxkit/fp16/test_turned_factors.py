import numpy as np
import onnx
import pytest

from onnxbuild.onnxkit.fp16.fp32_nodes import batch_transposes
from tests.onnxkit.models import model, value, weight


def product(order, other, *, first=True):
    """A product of a transposed input and a weight, or another input, of the shape `other`."""
    factors = ["turned", "w"] if first else ["w", "turned"]
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["turned"], name="turn", perm=order),
        onnx.helper.make_node("MatMul", factors, ["y"], name="multiply"),
    ]
    inputs = [value("x", [4] * len(order))]
    weights = [weight("w", np.ones(other, np.float32))]
    return model(nodes, inputs, [value("y", [4] * len(order))], weights)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("order", [[1, 0, 2], [1, 2, 0], [1, 2, 0, 3], [1, 2, 3, 0]])
def test_a_batch_that_moves_inwards_before_a_matrix_is_found(order, first):
    assert batch_transposes(product(order, (4, 4), first=first)) == ("turn",)


@pytest.mark.parametrize("order", [[1, 0], [2, 1, 0, 3]])
def test_other_transposes_are_left_alone(order):
    assert batch_transposes(product(order, (4, 4))) == ()


def test_factors_of_one_rank_are_left_alone():
    assert batch_transposes(product([1, 0, 2], (4, 4, 4))) == ()
