"""Transformers at each opset: built and checked, or refused with the operator and the least opset."""

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DUMMY_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from onnxbuild.steps import (
    calibrate,
    check,
    export,
    optimize,
    preprocess,
    quantize_dynamic,
    quantize_static,
)
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value, weight
from tests.steps.graphs import open_exact, save

FILE = Path(__file__).parent / "opset_models.py"
TAKES = (
    DummyInput("input_ids", "int64", ("batch", "sequence"), low=1, high=40),
    DummyInput("attention_mask", "int64", ("batch", "sequence"), fill=1),
)
AXES = (Axis("batch", 1, 4, 2), Axis("sequence", 2, 16, 6))


def exported(folder, name, opset, attention="sdpa", exporter="torchscript"):
    model = Entrypoint(f"{FILE}:load", {"name": name, "attention": attention})
    options = export.ExportOptions(exporter=exporter)
    params = export.ExportParams(model, TAKES, ("hidden",), AXES, opset, None, options)
    return run_step(export.KIND, params, folder / "export")[1]


def checked(folder, model):
    params = check.CheckParams(TAKES, ("hidden",), AXES, None)
    outcome, _ = run_step(check.KIND, params, folder / "check", {"model": model})
    return outcome.findings


def built(folder, source, monkeypatch):
    """The fused model and its 8-bit form, both checked."""
    monkeypatch.chdir(folder)
    inputs = {"model": source.output("model"), "config": source.output("config")}
    params = optimize.OptimizeParams(optimize.OptimizeOptions(), TAKES, AXES)
    outcome, context = run_step(optimize.KIND, params, folder / "optimize", inputs)
    assert not [note for note in outcome.notes if "left out" in note or "stays" in note]
    fused = context.output("model")
    assert checked(folder / "fp32", fused) == ()
    params = quantize_dynamic.DynamicParams(quantize_dynamic.DynamicOptions(reduce_range=False))
    _, context = run_step(quantize_dynamic.KIND, params, folder / "int8", {"model": fused})
    assert checked(folder / "int8", context.output("model")) == ()
    return outcome.metrics["fused"], fused, context.output("model")


def cosine(one, other):
    return float((one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other))


def judged(fused, quantized):
    feeds = {
        "input_ids": np.random.default_rng(3).integers(1, 40, (3, 9)),
        "attention_mask": np.ones((3, 9), np.int64),
    }
    expected, found = (open_exact(each).run(None, feeds)[0] for each in (fused, quantized))
    return cosine(expected, found)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize("opset", [18, *(slow(each) for each in (16, 17, 20, 21, 23, 24))])
@pytest.mark.parametrize("name", ["bert", "t5", "llama"])
def test_a_transformer_is_built_at_each_opset_that_can_hold_it(tmp_path, monkeypatch, name, opset):
    source = exported(tmp_path, name, opset)
    _, fused, quantized = built(tmp_path, source, monkeypatch)
    assert judged(fused, quantized) > 0.99


@pytest.mark.parametrize("opset", [11, slow(13)])
@pytest.mark.parametrize("name", ["bert", "t5", "llama"])
def test_below_it_is_refused_with_the_operator_and_the_least_opset_which_works(
    tmp_path, monkeypatch, name, opset
):
    with pytest.raises(StepError) as caught:
        exported(tmp_path / "refused", name, opset)
    assert caught.value.what == (
        "the torchscript exporter needs opset 14 for the operator "
        f"'aten::scaled_dot_product_attention'; the recipe asks for opset {opset}"
    )
    typed = re.fullmatch(r"write `opset: (\d+)`", caught.value.fix)
    source = exported(tmp_path / "typed", name, int(typed[1]))
    assert source.output("model").exists()


@pytest.mark.parametrize(("name", "opset"), [("bert", 11), slow("bert", 13)])
def test_attention_written_in_plain_operators_is_built_from_opset_11_on(
    tmp_path, monkeypatch, name, opset
):
    source = exported(tmp_path, name, opset, "eager")
    fused, model, quantized = built(tmp_path, source, monkeypatch)
    if name == "bert":
        assert fused["Attention"] == 1
    if name == "qwen3":
        assert fused["SkipSimplifiedLayerNormalization"] == 2
    assert judged(model, quantized) > 0.99


def test_onnx_attention_of_opset_23_is_not_taken_for_the_runtimes_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0).standard_normal
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["q"], name="product"),
        helper.make_node(
            "Attention", ["q", "q", "k"], ["y"], name="attention", q_num_heads=2, kv_num_heads=2
        ),
    ]
    weights = [weight("w", draw((8, 8)).astype(np.float32))]
    weights.append(weight("k", draw((1, 5, 8)).astype(np.float32)))
    ends = ([value(name, [1, 5, 8])] for name in "xy")
    source = save(model(nodes, *ends, weights, opset=23), tmp_path / "source")
    params = quantize_dynamic.DynamicParams(quantize_dynamic.DynamicOptions(reduce_range=False))
    _, context = run_step(quantize_dynamic.KIND, params, tmp_path / "int8", {"model": source})
    target = context.output("model")
    assert checker_faults(target, tmp_path) == []
    found = {node.op_type for node in load_model(target).graph.node}
    assert {"Attention", "MatMulInteger"} <= found
    feeds = {"x": draw((1, 5, 8)).astype(np.float32)}
    expected, actual = (open_exact(each).run(None, feeds)[0] for each in (source, target))
    assert cosine(expected, actual) > 0.99


@pytest.mark.parametrize(("opset", "domain"), [(11, "com.microsoft"), (13, "")])
def test_scales_by_channel_are_onnxs_where_the_opset_has_them_and_the_runtimes_below(
    tmp_path, monkeypatch, opset, domain
):
    monkeypatch.chdir(tmp_path)
    takes, axes = (DummyInput("x", "float32", ("batch", 16)),), (AXES[0],)
    source = save(linear(rows=16, columns=8, opset=opset), tmp_path / "source")
    _, context = run_step(
        preprocess.KIND, preprocess.PreprocessParams(), tmp_path / "ready", {"model": source}
    )
    ready = context.output("model")
    options = calibrate.CalibrationOptions(samples=8)
    params = calibrate.CalibrateParams(Entrypoint(DUMMY_DATA), takes, options, axes)
    _, context = run_step(calibrate.KIND, params, tmp_path / "ranges", {"model": ready})
    inputs = {"model": ready, "calibration": context.output("calibration")}
    params = quantize_static.StaticParams(
        quantize_static.StaticOptions(activation_type="uint8", reduce_range=False)
    )
    _, context = run_step(quantize_static.KIND, params, tmp_path / "int8", inputs)
    target = context.output("model")
    assert checker_faults(target, tmp_path) == []
    made = load_model(target)
    assert {node.domain for node in made.graph.node if "Quantize" in node.op_type} == {domain}
    assert [each.version for each in made.opset_import if not each.domain] == [opset]
    feeds = {"x": np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32)}
    expected, actual = (open_exact(each).run(None, feeds)[0] for each in (source, target))
    assert cosine(expected, actual) > 0.99
