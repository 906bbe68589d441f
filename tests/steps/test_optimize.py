import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.steps.optimize import KIND, OptimizeOptions, OptimizeParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear
from tests.steps.graphs import (
    HEADS,
    HIDDEN,
    WORDS,
    config,
    digits,
    interface,
    operators,
    run_model,
    save,
    sentences,
    tiny_bert,
)

BERT = {"model_type": "bert", "num_heads": HEADS, "hidden_size": HIDDEN}
BATCH, SEQUENCE = Axis("batch", 1, 8, 2), Axis("sequence", 2, 32, 8)
TEXT = (
    DummyInput("input_ids", "int64", ("batch", "sequence"), low=0, high=WORDS),
    DummyInput("attention_mask", "int64", ("batch", "sequence")),
)
ROWS = (DummyInput("x", "float32", ("batch", 4)),)
IMAGE = (DummyInput("image", "float32", ("batch", 1, 8, 8)),)


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def optimized(source, folder, reported=None, takes=TEXT, **options):
    inputs = {"model": source, "config": config(folder / "config", **(reported or {}))}
    axes = (BATCH, SEQUENCE) if takes == TEXT else (BATCH,)
    params = OptimizeParams(OptimizeOptions(**options), takes, axes)
    outcome, context = run_step(KIND, params, folder, inputs)
    return outcome, context.output("model")


def test_a_bert_gets_one_node_for_each_attention_and_says_the_same(tmp_path):
    source = tiny_bert(tmp_path / "source")
    outcome, target = optimized(source, tmp_path / "step", BERT)
    assert outcome.metrics["fused"]["Attention"] == 2
    assert outcome.metrics["nodes_after"] < outcome.metrics["nodes_before"] / 4
    assert outcome.notes == ()
    assert interface(target) == interface(source)
    expected = run_model(source, sentences())["hidden"]
    np.testing.assert_allclose(run_model(target, sentences())["hidden"], expected, atol=1e-5)


def test_basic_uses_standard_operators_alone(tmp_path):
    source = tiny_bert(tmp_path / "source")
    outcome, target = optimized(source, tmp_path / "step", level="basic")
    assert outcome.metrics["fused"] == {}
    assert {each.domain for each in onnx.load(target / "model.onnx").opset_import} == {""}


def test_attention_is_fused_for_every_mask_not_for_padding_at_the_end_alone(tmp_path):
    source = tiny_bert(tmp_path / "source")
    outcome, target = optimized(source, tmp_path / "step", BERT)
    assert outcome.metrics["fused"]["Attention"] == 2
    feeds = sentences()
    feeds["attention_mask"][0, :3] = 0
    feeds["attention_mask"][1, 2:4] = 0
    expected = run_model(source, feeds)["hidden"]
    np.testing.assert_allclose(run_model(target, feeds)["hidden"], expected, atol=1e-5)


@pytest.mark.slow
def test_a_fusion_that_spoils_the_model_is_left_out_by_itself_and_named(tmp_path):
    source = tiny_bert(tmp_path / "source")
    outcome, target = optimized(source, tmp_path / "step", {**BERT, "model_type": "vit"})
    (note,) = outcome.notes
    assert note == (
        "left out the fusion vit.attention: with it input 'attention_mask': the graph has no input "
        "'attention_mask'; it takes input_ids"
    )
    assert outcome.metrics["fused"]["SkipLayerNormalization"] == 4
    expected = run_model(source, sentences())["hidden"]
    np.testing.assert_allclose(run_model(target, sentences())["hidden"], expected, atol=1e-5)


def test_a_model_that_no_fusion_leaves_right_stays_as_it_was_exported(tmp_path):
    nameless = linear(opset=18)
    nameless.graph.input[0].name = nameless.graph.node[0].input[0] = "other"
    source = save(nameless, tmp_path / "source")
    takes = (*ROWS, DummyInput("other", "float32", ("batch", 4)))
    outcome, target = optimized(source, tmp_path / "step", takes=takes)
    (note,) = outcome.notes
    assert note == (
        "the model stays as exported: even without any fusion input 'x': the graph has no input 'x'; "
        "it takes other"
    )
    assert operators(target) == operators(source)


def test_fusions_that_fail_leave_the_runtimes_own_and_a_note(tmp_path):
    source = digits(tmp_path / "source")
    outcome, target = optimized(source, tmp_path / "step", takes=IMAGE, model_type="unet")
    assert len(outcome.notes) == 1
    assert "'unet'" in outcome.notes[0]
    assert operators(target)["Conv"] == 3


def test_an_unknown_model_type_is_an_error_with_the_nearest(tmp_path):
    source = save(linear(), tmp_path / "source")
    with pytest.raises(StepError) as caught:
        optimized(source, tmp_path / "step", takes=ROWS, model_type="bertt")
    assert "`optimize.model_type` is 'bertt'; expected auto or one of bart, bert," in str(
        caught.value
    )
    assert caught.value.fix == "did you mean 'bert'?"


def test_activations_stay_apart_from_convolutions_so_that_quantizers_see_them(tmp_path):
    _, target = optimized(digits(tmp_path / "source"), tmp_path / "step", takes=IMAGE)
    found = operators(target)
    assert found["Conv"] == 3
    assert found["Gemm"] == 2
    assert not {"FusedConv", "FusedGemm"} & set(found)
