import numpy as np
import onnx
import pytest

from onnxbuild.onnxkit.saturation.saturation import saturating_nodes, saturation_notes
from tests.onnxkit.models import model, value, weight


def quantized(kind, weights, **attributes):
    """One node whose weights come through a DequantizeLinear."""
    helper = onnx.helper
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale"], ["w"], name="weights"),
        helper.make_node(kind, ["x", "w"], ["y"], name="node", **attributes),
    ]
    return model(
        nodes,
        [value("x", None)],
        [value("y", None)],
        [weight("q", weights), weight("scale", np.float32(0.1))],
    )


@pytest.mark.parametrize(
    ("weights", "overflows"),
    [
        ([[100], [29]], True),
        ([[-100], [-29]], True),
        ([[127], [-128]], False),
        ([[0], [100], [100], [0]], False),
        ([[127]], False),
    ],
)
def test_neighbours_along_the_summed_axis_count(weights, overflows):
    assert bool(saturating_nodes(quantized("MatMul", np.int8(weights)))) == overflows


def test_a_transposed_gemm_is_summed_along_its_other_axis():
    weights = np.int8([[100, 100, 0, 0]])
    assert saturating_nodes(quantized("Gemm", weights, transB=1)) == ("node",)
    assert saturating_nodes(quantized("Gemm", weights.T)) == ("node",)
    assert saturating_nodes(quantized("Gemm", weights)) == ()


def test_a_convolution_is_summed_channels_last():
    kernel = np.zeros((1, 2, 1, 2), np.int8)
    kernel[0, :, 0, 0] = 100  # both channels of one place
    assert saturating_nodes(quantized("Conv", kernel)) == ("node",)
    kernel = np.zeros((1, 2, 1, 2), np.int8)
    kernel[0, 0, 0, :] = 100  # one channel of both places
    assert saturating_nodes(quantized("Conv", kernel)) == ()


def test_a_convolution_of_one_channel_each_is_widened_before_it_adds():
    kernel = np.full((2, 1, 2, 2), 127, np.int8)
    assert saturating_nodes(quantized("Conv", kernel, group=2)) == ()
    assert saturating_nodes(quantized("Conv", kernel)) == ("node",)  # two outputs of one channel


def test_a_stack_of_matrices_is_looked_at_one_by_one():
    stack = np.zeros((3, 4, 2), np.int8)
    assert saturating_nodes(quantized("MatMul", stack)) == ()
    stack[2, 2:, 1] = 100
    assert saturating_nodes(quantized("MatMul", stack)) == ("node",)


def test_unsigned_weights_never_overflow():
    assert saturating_nodes(quantized("MatMul", np.full((4, 1), 255, np.uint8))) == ()


def test_a_note_has_a_fix_that_helps_each_of_its_nodes():
    own, given = saturation_notes(["a", "b", "c"], {"b"})
    assert own.startswith("the sums of 2 nodes ")
    assert "(a, ...): write `reduce_range: auto`" in own
    assert given.startswith("the sums of 1 node ")
    assert "reduce_range" not in given
    assert saturation_notes([], {"b"}) == []
