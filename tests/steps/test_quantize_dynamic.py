import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.saturation.saturation import may_saturate
from onnxbuild.steps.quantize_dynamic import KIND, DynamicOptions, DynamicParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import branching, linear, model, value, weight
from tests.steps.graphs import (
    digits,
    interface,
    operators,
    run_model,
    save,
    sentences,
    tiny_bert,
    tiny_mpnet,
)
from tests.steps.test_optimize import BERT, optimized


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def quantized(source, folder, **options):
    params = DynamicParams(DynamicOptions(**{"reduce_range": False, **options}))
    outcome, context = run_step(KIND, params, folder, {"model": source})
    return outcome, context.output("model")


def cosine(a, b):
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


def weights_of(folder):
    return {each.name: each for each in onnx.load(folder / "model.onnx").graph.initializer}


def test_a_bert_is_quantized_and_close_to_what_it_was(tmp_path):
    source = tiny_bert(tmp_path / "source")
    outcome, target = quantized(source, tmp_path / "step")
    assert outcome.metrics["quantized"] == {"Gather": 3, "MatMulInteger": 12}
    assert outcome.metrics["quantized_nodes"] == 15
    assert interface(target) == interface(source)
    expected = run_model(source, sentences())["hidden"]
    assert cosine(run_model(target, sentences())["hidden"], expected) > 0.999


@pytest.mark.slow  # dynamo
def test_an_mpnet_keeps_the_positions_that_it_counts_from_2_and_skips_padding(tmp_path):
    source = tiny_mpnet(tmp_path / "source")
    _, fused = optimized(source, tmp_path / "optimize", {**BERT, "model_type": "mpnet"})
    assert operators(fused)["EmbedLayerNormalization"] == 1
    outcome, target = quantized(fused, tmp_path / "step")
    assert outcome.metrics["quantized"]["Gather"] == 3  # words, positions, and relative positions
    feeds = sentences()
    feeds["input_ids"] = np.where(feeds["attention_mask"] == 1, feeds["input_ids"] % 45 + 5, 1)
    expected = run_model(source, feeds)["hidden"]
    assert cosine(run_model(target, feeds)["hidden"], expected) > 0.999
    assert (target / "model.onnx").stat().st_size < 0.55 * (fused / "model.onnx").stat().st_size


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("source", [tiny_bert, digits])
def test_pairs_lose_less_than_7_bits_and_no_sum_can_saturate(tmp_path, source, per_channel):
    source = source(tmp_path / "source")
    if source_has(source, "LayerNormalization"):
        _, source = optimized(source, tmp_path / "optimize", BERT)  # its Attention is one node
    losses = {}
    for reduced in (True, "pairs", False):
        _, target = quantized(
            source, tmp_path / f"{reduced}", reduce_range=reduced, per_channel=per_channel
        )
        losses[reduced], could = 0.0, []
        floats = weights_of(source)
        for name, codes in weights_of(target).items():
            matrix = floats.get(name.removesuffix("_quantized"))
            if not name.endswith("_quantized") or matrix is None or len(matrix.dims) != 2:
                continue
            held, array = onnx.numpy_helper.to_array(codes), onnx.numpy_helper.to_array(matrix)
            array = array if held.shape == array.shape else array.T
            scale = onnx.numpy_helper.to_array(weights_of(target)[f"{name[:-10]}_scale"])
            if multiplied(target, name):
                could.append(may_saturate(held))
                losses[reduced] += float(((held * scale - array) ** 2).sum() / (array**2).sum())
        assert could
        assert any(could) is (reduced is False)
    assert losses[False] < losses["pairs"] < 0.7 * losses[True]


def source_has(folder, operator):
    return operator in operators(folder)


def multiplied(folder, name):
    nodes = onnx.load(folder / "model.onnx").graph.node
    return any(n.op_type in {"MatMulInteger", "QAttention"} and name in n.input for n in nodes)


def test_nodes_named_stay_in_fp32(tmp_path):
    source = digits(tmp_path / "source")
    gemm = [n.name for n in onnx.load(source / "model.onnx").graph.node if n.op_type == "Gemm"]
    outcome, target = quantized(
        source, tmp_path / "step", op_types=("MatMul",), nodes_to_exclude=(gemm[0],)
    )
    assert outcome.metrics["quantized"] == {"MatMulInteger": 1}
    assert operators(target)["Conv"] == 3


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"nodes_to_exclude": ("multiplyy",)}, "node 'multiplyy'", "did you mean 'multiply'?"),
        ({"nodes_to_exclude": ("multiply",)}, "nothing was quantized", "see `op_types`"),
    ],
)
def test_options_that_cannot_be_met_are_errors(tmp_path, options, what, fix):
    source = save(linear(), tmp_path / "source")
    with pytest.raises(StepError) as caught:
        quantized(source, tmp_path / "step", **options)
    assert what in caught.value.what
    assert caught.value.fix.startswith(fix)
    assert caught.value.where == "test:step"


def test_a_model_without_weights_to_quantize_is_an_error(tmp_path):
    made = model(
        [onnx.helper.make_node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y", [2])]
    )
    with pytest.raises(StepError, match="nothing was quantized; expected at least one MatMul"):
        quantized(save(made, tmp_path / "source"), tmp_path / "step")


def test_products_that_are_all_in_bodies_are_the_reason_that_nothing_is_quantized(tmp_path):
    made = branching()
    (then,) = (each.g for each in made.graph.node[0].attribute if each.name == "then_branch")
    then.node[0].op_type = "MatMul"
    made.graph.initializer[0].CopyFrom(weight("w", np.eye(2, dtype=np.float32)))
    with pytest.raises(StepError, match="nothing was quantized") as caught:
        quantized(save(made, tmp_path / "source"), tmp_path / "step")
    assert caught.value.what.endswith(
        "; 1 MatMul in bodies of If, Loop or Scan stay in fp32; `mode: weight_only` takes these"
    )
