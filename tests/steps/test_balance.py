import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DUMMY_DATA, FILE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.sensitivity.dynamic_rounding import quantizable_nodes
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.steps import quantize_dynamic, round_weights
from onnxbuild.steps.balance import KIND
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value, weight
from tests.steps import transformers
from tests.steps.graphs import open_exact, operators, run_model, save, tiny_bert
from tests.steps.transformers import OUTLIERS, WIDTH, tokens, transformer

TOKENS = (DummyInput("x", "float32", ("batch", "tokens", WIDTH)),)
AXES = (Axis("batch", 1, 8, 2), Axis("sequence", 1, 16, 5))
ROWS = (DummyInput("x", "float32", ("tokens", WIDTH)),)


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def data(name):
    return Entrypoint(f"{Path(transformers.__file__)}:{name}")


def balanced(source, folder, *, name="calibration", inputs=TOKENS):
    outcome, context = run_step(KIND, DataParams(data(name), inputs), folder, {"model": source})
    report = json.loads((context.output("report") / "report.json").read_text())
    return outcome, context.output("model"), report


def quantized(source, folder, **inputs):
    options = quantize_dynamic.DynamicOptions(reduce_range=False)
    params = quantize_dynamic.DynamicParams(options)
    _, context = run_step(quantize_dynamic.KIND, params, folder, {"model": source, **inputs})
    return context.output("model")


def rounded(source, folder):
    params = round_weights.RoundParams(data("calibration"), TOKENS)
    outcome, context = run_step(round_weights.KIND, params, folder, {"model": source})
    return outcome, context.output("model")


def weights_of(folder):
    made = onnx.load(folder / "model.onnx").graph.initializer
    return {each.name: onnx.numpy_helper.to_array(each) for each in made}


def loss(model, exact):
    """Root of the mean squared error over unseen tokens, of what the MLP and the query add."""
    feeds = [tokens(seed) for seed in range(100, 110)]
    sessions = open_exact(model), open_exact(exact)
    pairs = [[run_session(session, each)["y"] for session in sessions] for each in feeds]
    return float(np.sqrt(np.mean([((a - b) ** 2).mean() for a, b in pairs])))


def test_eight_bits_lose_far_less_of_a_balanced_model(tmp_path):
    source = save(transformer(), tmp_path / "source")
    _, even, _ = balanced(source, tmp_path / "balance")
    _, fitted = rounded(even, tmp_path / "round")
    plain = loss(quantized(source, tmp_path / "plain"), source)
    better = loss(quantized(even, tmp_path / "better"), source)
    best = loss(quantized(even, tmp_path / "best", rounded=fitted), source)
    assert better < plain / 4
    assert best < better


def test_rounded_weights_are_what_the_quantizer_finds_and_kept_nodes_do_not_take_them(tmp_path):
    source = save(transformer(), tmp_path / "source")
    _, fitted = rounded(source, tmp_path / "round")
    report = tmp_path / "sensitivity"
    report.mkdir()
    names = ["down_product", "up_product", "query_product"]
    (report / "report.json").write_text(json.dumps({"nodes": [{"name": each} for each in names]}))
    options = quantize_dynamic.DynamicOptions(reduce_range=False, keep_most_sensitive=0.3)
    _, context = run_step(
        quantize_dynamic.KIND, quantize_dynamic.DynamicParams(options), tmp_path / "step",
        {"model": source, "rounded": fitted, "sensitivity": report},
    )  # fmt: skip
    exact, intended, found = (
        weights_of(each) for each in (source, fitted, context.output("model"))
    )
    np.testing.assert_array_equal(found["down"], exact["down"])
    for name in ("up", "query"):
        written = found[f"{name}_quantized"] * found[f"{name}_scale"]
        np.testing.assert_allclose(written, intended[name], rtol=1e-6)
        assert np.abs(intended[name] - exact[name]).max() > 0


@pytest.mark.parametrize("activation", ["Gelu", "SiLU"])
def test_a_balanced_model_computes_what_it_did(tmp_path, activation):
    domain = "" if activation == "Relu" else "com.microsoft"
    source = save(transformer(activation=activation, domain=domain), tmp_path / "source")
    outcome, even, report = balanced(source, tmp_path / "step")
    assert outcome.metrics["branches"] == 1
    assert outcome.metrics["balanced_nodes"] == 2
    assert [each["channels"] for each in report["branches"]] == [list(OUTLIERS)]
    assert report["balanced"][0]["spread_after"] < report["balanced"][0]["spread_before"] / 2
    feeds = tokens(50)
    np.testing.assert_allclose(
        run_model(even, feeds)["y"], run_model(source, feeds)["y"], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("shift", [True, False])
def test_a_normalization_that_only_multiplications_read_scales_by_itself(tmp_path, shift):
    made = transformer(residual=False)
    if not shift:
        del made.graph.node[0].input[2]
    source = save(made, tmp_path / "source")
    outcome, even, _ = balanced(source, tmp_path / "step")
    assert outcome.metrics["balanced_nodes"] == 2
    assert operators(even)["Mul"] == operators(source)["Mul"] == 0
    assert np.abs(weights_of(even)["gamma"] / weights_of(source)["gamma"] - 1).max() > 0.5
    feeds = tokens(50)
    np.testing.assert_allclose(
        run_model(even, feeds)["y"], run_model(source, feeds)["y"], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(("residual", "added"), [(True, 1), (False, 0)])
def test_a_reshape_may_stand_before_the_multiplications(tmp_path, residual, added):
    made = transformer(gemm=True, residual=residual)
    for node in made.graph.node:
        if node.op_type in {"Gemm", "MatMul"} and node.input[0] == "n":
            node.input[0] = "r"
    made.graph.node.insert(1, onnx.helper.make_node("Reshape", ["n", "shape"], ["r"], name="r"))
    made.graph.initializer.append(weight("shape", np.int64([-1, WIDTH])))
    source = save(made, tmp_path / "source")
    outcome, even, _ = balanced(source, tmp_path / "step", name="rows", inputs=ROWS)
    assert outcome.metrics["balanced_nodes"] == 2
    assert operators(even)["Mul"] == added
    feeds = {"x": tokens(50)["x"][0]}
    np.testing.assert_allclose(
        run_model(even, feeds)["y"], run_model(source, feeds)["y"], rtol=1e-4, atol=1e-4
    )


def test_outlier_channels_stay_in_fp32_and_are_no_candidates_for_it(tmp_path):
    source = save(transformer(), tmp_path / "source")
    _, even, _ = balanced(source, tmp_path / "step")
    found = quantizable_nodes(onnx.load(even / "model.onnx"))
    assert {each.name for each in found} == {"up_product", "down_product", "query_product"}
    assert operators(quantized(even, tmp_path / "int8"))["MatMulInteger"] == 3
    assert operators(quantized(even, tmp_path / "again"))["MatMul"] == 2


@pytest.mark.slow
def test_a_fused_bert_with_attention_is_balanced(tmp_path):
    from tests.steps.test_optimize import BERT, optimized

    words = DummyInput("input_ids", "int64", ("batch", "sequence"), low=1, high=50)
    mask = DummyInput("attention_mask", "int64", ("batch", "sequence"), fill=1)
    _, fused = optimized(tiny_bert(tmp_path / "source"), tmp_path / "optimize", BERT)
    params = DataParams(Entrypoint(DUMMY_DATA), (words, mask), AXES, samples=2)
    outcome, _ = run_step(KIND, params, tmp_path / "step", {"model": fused})
    assert operators(fused)["Attention"] == 2
    assert outcome.metrics["balanced_nodes"] == 4
    assert "no calibration" in outcome.notes[-1]


def test_a_model_without_anything_to_balance_stays_as_it_is(tmp_path):
    x = (DummyInput("x", "float32", ("batch", 4)),)
    source = save(linear(), tmp_path / "source")
    params = DataParams(Entrypoint(DUMMY_DATA), x, AXES, samples=2)
    outcome, context = run_step(KIND, params, tmp_path / "step", {"model": source})
    assert outcome.notes[0].startswith("nothing to balance")
    made = context.output("model") / "model.onnx"
    assert made.read_bytes() == (source / "model.onnx").read_bytes()


def chain(*, gemm):
    """Three matrices in a row, both hidden layers with a channel far beyond the others."""
    draw = np.random.default_rng(3).standard_normal
    shapes = {"w1": (16, 64), "w2": (64, 64), "w3": (64, 4), "b1": (64,), "b2": (64,)}
    arrays = {name: (draw(shape) / 5).astype(np.float32) for name, shape in shapes.items()}
    arrays["w1"][:, 5] *= 8
    arrays["w2"][:, 9] *= 8
    nodes = []
    for number, source in ((1, "x"), (2, "a1")):
        w, b, h = f"w{number}", f"b{number}", f"h{number}"
        if gemm:
            nodes.append(onnx.helper.make_node("Gemm", [source, w, b], [h], name=w))
        else:
            nodes.append(onnx.helper.make_node("MatMul", [source, w], [f"p{number}"], name=w))
            nodes.append(onnx.helper.make_node("Add", [f"p{number}", b], [h], name=b))
        nodes.append(onnx.helper.make_node("Relu", [h], [f"a{number}"], name=f"a{number}"))
    nodes.append(onnx.helper.make_node("MatMul", ["a2", "w3"], ["y"], name="w3"))
    weights = [weight(name, array) for name, array in arrays.items()]
    return model(nodes, [value("x", ["n", 16])], [value("y", ["n", 4])], weights)


@pytest.mark.parametrize("gemm", [False, True])
def test_outliers_of_layers_in_a_row_pass_from_one_branch_to_the_next(tmp_path, gemm):
    source = save(chain(gemm=gemm), tmp_path / "source")
    feeds = {"x": np.random.default_rng(0).standard_normal((32, 16)).astype(np.float32)}
    np.savez(tmp_path / "data.npz", **feeds)
    inputs = (DummyInput("x", "float32", ("n", 16)),)
    params = DataParams(Entrypoint(FILE_DATA, files=("data.npz",)), inputs)
    outcome, context = run_step(KIND, params, tmp_path / "step", {"model": source})
    assert outcome.metrics["branches"] == 2
    target = context.output("model")
    expected = run_model(source, feeds)["y"]
    np.testing.assert_allclose(run_model(target, feeds)["y"], expected, rtol=1e-4, atol=1e-4)
    made = onnx.load(target / "model.onnx")
    made.graph.output.extend(value(name, None) for name in ("a1", "a2"))
    hidden = run_model(save(made, tmp_path / "opened"), feeds)
    assert not hidden["a1"][:, 5].any()
    assert not hidden["a2"][:, 9].any()


def test_a_model_that_would_compute_something_else_is_refused(tmp_path):
    made = transformer()
    made.graph.node.append(onnx.helper.make_node("Mul", ["y", "huge"], ["far"]))
    made.graph.node.append(onnx.helper.make_node("Sin", ["far"], ["z"]))
    made.graph.initializer.append(weight("huge", np.float32([1e6])))
    made.graph.output[0].name = "z"
    source = save(made, tmp_path / "source")
    with pytest.raises(StepError, match="differs from the one it was made of") as caught:
        balanced(source, tmp_path / "step")
    assert "write `balance: false`" in caught.value.fix
