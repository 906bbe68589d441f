"""The colour of a node: what it computes in, or what its weights are stored in."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.onnxkit.pictures.nodes import of_dtype, read_graphs
from onnxbuild.onnxkit.pictures.page import lone_svg
from tests.onnxkit.pictures.models import model_of, weight


def precisions(model) -> list[str]:
    return [node.precision for node in read_graphs(model)[0].nodes]


def scalar(name: str, value: float, dtype: str):
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def test_floats_are_what_they_are():
    half = weight("half", 32, 32, dtype="float16")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["b", "half"], ["c"]),
        helper.make_node("Shape", ["c"], ["d"]),
        helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
    ]
    assert precisions(model_of(nodes, [weight("w", 32, 32), half])) == [
        "fp32", "fp16", "fp16", "other", "fp32"
    ]  # fmt: skip


def test_dynamic_int8():
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    found = precisions(model_of(nodes, [weight("w", 32, 32, dtype="int8")]))
    assert found == ["int8", "int8", "fp32", "fp32"]


def test_a_node_between_dequantized_values_is_in_eight_bits():
    held = [
        weight("w", 32, 32, dtype="int8"), scalar("s", 1, "float32"),
        scalar("z", 0, "uint8"), scalar("wz", 0, "int8"),
    ]  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "s", "wz"], ["dw"]),
        helper.make_node("MatMul", ["d", "dw"], ["m"]),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    assert precisions(model_of(nodes, held)) == ["int8", "int8", "int8", "int8", "fp32"]


@pytest.mark.parametrize(("bits", "expected"), [(4, "int4"), (8, "int8")])
def test_weights_in_blocks_of_few_bits(bits, expected):
    node = helper.make_node(
        "MatMulNBits",
        ["x", "w", "s"],
        ["y"],
        domain="com.microsoft",
        K=32,
        N=32,
        bits=bits,
        block_size=32,
    )
    model = model_of([node], [weight("w", 32, 1, 16, dtype="uint8"), weight("s", 32)])
    assert precisions(model) == [expected]
    assert f'class="box {expected}"' in lone_svg(model, label="t")


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float64", "fp32"), ("float4e2m1", "int4"), ("string", "other")],
)  # fmt: skip
def test_rarer_ones_are_shown_as_the_nearest(dtype, expected):
    assert of_dtype(dtype) == expected
