from itertools import combinations

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, checker, helper

from onnxbuild.onnxkit.fp16.float16 import convert
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.optimize.fusable_forms import fit_norms, split_weight_products
from onnxbuild.onnxkit.optimize.fusing import Fusing, RefusedFusion, spoiling_fusions
from onnxbuild.onnxkit.optimize.held_constants import HeldConstants
from onnxbuild.onnxkit.optimize.offline_optimization import optimize_offline
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import open_session
from tests.onnxkit.models import model, value, weight

NAMES = tuple("abcdefghij")


def search(*groups):
    """Find what to leave out where any of the groups, together, spoils the graph."""
    tried = []

    def fault(left_out):
        tried.append(frozenset(left_out))
        found = [group for group in groups if not set(group) & set(left_out)]
        return f"wrong by {found[0]}" if found else ""

    return spoiling_fusions(NAMES, fault), tried, fault


def test_nothing_is_left_out_of_a_right_graph():
    found, tried, _ = search()
    assert found == ()
    assert len(tried) == 2


def test_the_one_that_spoils_it_is_found_by_halving():
    found, tried, _ = search("g")
    assert found == (RefusedFusion("g", "wrong by g"),)
    assert len(tried) <= 7


def test_two_that_spoil_it_alone_are_both_found():
    found, _, _ = search("b", "i")
    assert [each.name for each in found] == ["b", "i"]


def test_of_those_that_spoil_it_together_the_last_is_left_out():
    found, _, _ = search("ch")
    assert [each.name for each in found] == ["h"]


def test_a_graph_that_is_wrong_without_any_has_no_answer():
    assert spoiling_fusions(NAMES, lambda left_out: "wrong") is None


PAIRS = [*NAMES, *("".join(pair) for pair in combinations(NAMES, 2))]


@given(st.lists(st.sampled_from(PAIRS), max_size=6))
def test_what_is_left_makes_a_right_graph_and_was_the_last_one_tried(groups):
    found, tried, fault = search(*groups)
    left_out = [each.name for each in found]
    assert not fault(left_out)
    assert tried[-2] == frozenset(left_out)
    assert all(any(name in group for group in groups) for name in left_out)


def test_a_model_with_an_fp16_input_is_converted_to_fp16_after_it_was_optimized(tmp_path):
    nodes = [
        helper.make_node("Add", ["half", "one"], ["more"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    made = model(
        nodes,
        [value("half", ["n", 2], TensorProto.FLOAT16), value("x", ["n", 2])],
        [value("more", ["n", 2], TensorProto.FLOAT16), value("y", ["n", 2])],
        [weight("one", np.ones(1, np.float16)), weight("w", np.eye(2, dtype=np.float32))],
    )
    save_model(made, tmp_path / "given")
    fused = Fusing(
        HeldConstants(tmp_path / "given"), tmp_path / "scratch", "extended", None, "r:optimize"
    ).fuse()
    save_model(fused.model, tmp_path / "fused")
    typed = load_typed(tmp_path / "fused")

    converted = convert(typed, keep_io_types=True, op_types=(), nodes=())
    save_model(converted, tmp_path / "fp16")
    session = open_session(tmp_path / "fp16", where="r:fp16/convert")

    half, x = np.full((3, 2), 1.5, np.float16), np.full((3, 2), 0.5, np.float32)
    more, y = session.run(None, {"half": half, "x": x})
    assert more.tolist() == (half + 1).tolist()
    assert y.tolist() == x.tolist()


X = np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32) * 3 + 1


def normalizing(op_type, opset, *, dtype=np.float32, axes=1):
    shape = X.shape[-axes:]
    draw = np.random.default_rng(1).standard_normal
    names = ["scale", "bias"] if op_type == "LayerNormalization" else ["scale"]
    weights = [weight(name, draw(shape).astype(dtype)) for name in names]
    kind = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
    node = helper.make_node(op_type, ["x", *names], ["y"], name="norm", axis=-axes, epsilon=1e-3)
    made = model(
        [node],
        [value("x", ["n", 5, 8], kind)],
        [value("y", ["n", 5, 8], kind)],
        weights,
        opset=opset,
    )
    made.ir_version = 8
    return made


def run(made, x, level="DISABLE_ALL", target=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    if target is not None:
        options.optimized_model_filepath = str(target)
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


def fitted(made):
    copy = onnx.ModelProto()
    copy.CopyFrom(made)
    fit_norms(copy)
    canonicalize(copy)
    onnx.checker.check_model(copy, full_check=True)
    return copy


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize(
    ("op_type", "opset"),
    [
        ("LayerNormalization", 11),
        ("LayerNormalization", 16),
        ("SimplifiedLayerNormalization", 13),
        ("SimplifiedLayerNormalization", 18),
        ("SimplifiedLayerNormalization", 22),
    ],
)
def test_what_the_opset_lacks_is_spelled_out_and_computes_the_same(op_type, opset, axes):
    made = normalizing(op_type, opset, axes=axes)
    found = fitted(made)
    assert op_type not in {node.op_type for node in found.graph.node}
    np.testing.assert_allclose(run(found, X), run(made, X), atol=2e-6)


def test_halves_are_computed_in_float32_so_that_their_squares_fit():
    made = normalizing("SimplifiedLayerNormalization", 18, dtype=np.float16)
    x = (X * 200).astype(np.float16)
    assert np.abs(x).max() > 256  # whose square is beyond 65504
    np.testing.assert_allclose(
        run(fitted(made), x).astype(np.float32), run(made, x).astype(np.float32), rtol=2e-3
    )


def test_a_session_fuses_again_what_is_spelled_out(tmp_path):
    for op_type in ("LayerNormalization", "SimplifiedLayerNormalization"):
        made = fitted(normalizing(op_type, 16))
        run(made, X, "ENABLE_EXTENDED", tmp_path / "fused.onnx")
        nodes = onnx.load(tmp_path / "fused.onnx").graph.node
        assert [node.op_type for node in nodes] == [op_type]


def test_opset_23_has_the_simplified_one_under_another_name():
    made = normalizing("SimplifiedLayerNormalization", 23)
    found = fitted(made)
    assert [node.op_type for node in found.graph.node] == ["RMSNormalization"]
    np.testing.assert_allclose(run(found, X), run(made, X), atol=2e-6)


def test_what_the_opset_has_stays():
    made = normalizing("LayerNormalization", 17)
    canonicalize(made)
    assert fitted(made) == made


def test_a_norm_whose_scale_is_computed_stays_for_the_checker_to_name():
    made = normalizing("LayerNormalization", 16)
    made.graph.node[0].input[1] = "other"
    made.graph.input.append(value("other", [8]))
    before = made.SerializeToString()
    fit_norms(made)
    assert made.SerializeToString() == before


_RNG = np.random.default_rng(0)
VALUES = _RNG.standard_normal((2, 6, 8)).astype(np.float32)
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


def run_on_values(made):
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": VALUES})[0]


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
    wanted = run_on_values(fused)
    split_weight_products(fused)
    canonicalize(fused)
    checker.check_model(fused, full_check=True)
    assert operators(fused) == expected
    np.testing.assert_allclose(run_on_values(fused), wanted, rtol=1e-6, atol=1e-6)


def test_a_product_of_activations_stays_fused():
    node = helper.make_node("FusedMatMul", ["x", "x"], ["y"], domain="com.microsoft", transB=1)
    made = model([node], [value("x", ["n", 6, 8])], [value("y", ["n", 6, 6])], opset=17)
    split_weight_products(made)
    assert operators(made) == ["FusedMatMul"]
