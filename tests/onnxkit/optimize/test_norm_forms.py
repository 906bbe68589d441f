"""Normalizations of ONNX Runtime's fusions, as the declared opset has them."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.optimize.fusable_forms import fit_norms
from tests.onnxkit.models import model, value, weight

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
