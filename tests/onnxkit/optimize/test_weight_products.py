"""Products with weights: a scale or a transposition next to them does not hide them from quantizers."""

import numpy as np
import onnxruntime
import pytest
from onnx import checker, helper

from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.optimize.fusable_forms import split_weight_products
from onnxbuild.onnxkit.optimize.offline_optimization import optimize_offline
from tests.onnxkit.models import model, value, weight

_RNG = np.random.default_rng(0)
X = _RNG.standard_normal((2, 6, 8)).astype(np.float32)
W = _RNG.standard_normal((8, 4)).astype(np.float32)


def scaled(first="MatMul"):
    """The product of activations and a weight; its result or its first factor is scaled."""
    mul, product = ("x", "y") if first == "Mul" else ("a", "a")
    nodes = [
        helper.make_node("MatMul", ["b" if first == "Mul" else "x", "w"], [product]),
        helper.make_node("Mul", [mul, "s"], ["b" if first == "Mul" else "y"]),
    ]
    return _made(nodes[::-1] if first == "Mul" else nodes, W)


def transposed():
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["t", "w"], ["a"]),
        helper.make_node("Mul", ["a", "s"], ["y"]),
    ]
    return _made(nodes, _RNG.standard_normal((6, 4)).astype(np.float32))


def _made(nodes, matrix):
    weights = [weight("w", matrix), weight("s", np.array(0.25, np.float32))]
    rows = 8 if len(nodes) > 2 else 6
    made = model(nodes, [value("x", ["n", 6, 8])], [value("y", ["n", rows, 4])], weights, opset=17)
    made.ir_version = 8
    return made


def operators(made):
    return sorted(node.op_type for node in made.graph.node)


def run(made):
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": X})[0]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (scaled(), ["MatMul", "Mul"]),
        (scaled("Mul"), ["MatMul", "Mul"]),
        (transposed(), ["MatMul", "Mul", "Transpose"]),
    ],
    ids=["scaled result", "scaled factor", "transposed"],
)
def test_a_weight_of_a_fused_product_is_one_of_a_matmul(made, expected, tmp_path):
    save_model(made, tmp_path / "given")
    folder = optimize_offline(tmp_path / "given", tmp_path / "fused", level="extended")
    fused = load_model(folder)
    assert operators(fused) == ["FusedMatMul"]
    wanted = run(fused)
    split_weight_products(fused)
    canonicalize(fused)
    checker.check_model(fused, full_check=True)
    assert operators(fused) == expected
    np.testing.assert_allclose(run(fused), wanted, rtol=1e-6, atol=1e-6)


def test_a_product_of_activations_stays_fused():
    node = helper.make_node("FusedMatMul", ["x", "x"], ["y"], domain="com.microsoft", transB=1)
    made = model([node], [value("x", ["n", 6, 8])], [value("y", ["n", 6, 6])], opset=17)
    split_weight_products(made)
    assert operators(made) == ["FusedMatMul"]
