"""Biases after correction: the means of quantized outputs are those of fp32 again."""

import json

import numpy as np
import onnx
import pytest

from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.steps import calibrate, preprocess, quantize_static
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import run_model, save

helper = onnx.helper
CHANNELS, OUTPUTS = 8, 12


def drawn(*shape):
    """Weights with one large value, so that a scale for all of them is coarse."""
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32) / 4
    values.flat[0] = 8
    return values


def network(kind, bias):
    """One multiplication, its input shape, and attributes that are easily forgotten."""
    tensors = [weight("b", np.linspace(-1, 1, OUTPUTS, dtype=np.float32))] if bias else []
    inputs = ["x", "w", "b"] if bias else ["x", "w"]
    shape = ["batch", CHANNELS]
    nodes = []
    if kind == "Conv":
        shape = ["batch", CHANNELS, 9, 9]
        tensors.append(weight("w", drawn(OUTPUTS, CHANNELS // 2, 3, 3)))
        nodes.append(helper.make_node("Conv", inputs, ["y"], "node", group=2))
    elif kind == "Gemm":
        tensors.append(weight("w", drawn(OUTPUTS, CHANNELS)))
        nodes.append(
            helper.make_node("Gemm", inputs, ["y"], "node", transB=1, alpha=0.5, beta=2.0)
        )
    else:
        tensors.append(weight("w", drawn(CHANNELS, OUTPUTS)))
        nodes.append(helper.make_node("MatMul", ["x", "w"], ["xw" if bias else "y"], "node"))
        if bias:
            nodes.append(helper.make_node("Add", ["b", "xw"], ["y"], "shift"))
    return model(nodes, [value("x", shape)], [value("y", None)], tensors), shape


def quantized(folder, made, shape, feeds, *, corrected, opset=18):
    made.opset_import[0].version = opset
    source = save(made, folder / "source")
    _, context = run_step(
        preprocess.KIND, preprocess.PreprocessParams(), folder / "ready", {"model": source}
    )
    ready = context.output("model")
    np.savez(folder / "calib.npz", x=feeds["x"])
    params = calibrate.CalibrateParams(
        Entrypoint("files", files=(str(folder / "calib.npz"),)),
        (DummyInput("x", "float32", tuple(shape)),),
        calibrate.CalibrationOptions(samples=1000),
        (Axis("batch", 1, 64, 2),),
        means=corrected,
    )
    _, context = run_step(calibrate.KIND, params, folder / "calibrate", {"model": ready})
    calibration = context.output("calibration")
    options = quantize_static.StaticOptions(
        activation_type="uint16", per_channel=False, reduce_range=True, bias_correction=corrected
    )
    outcome, context = run_step(
        quantize_static.KIND,
        quantize_static.StaticParams(options),
        folder / "quantize",
        {"model": ready, "calibration": calibration},
    )
    return outcome, ready, context.output("model"), calibration


@pytest.mark.parametrize(
    ("kind", "bias"),
    [("Conv", True), ("Conv", False), ("Gemm", True), ("Gemm", False), ("MatMul", True)],
)
def test_the_mean_of_each_output_channel_comes_back(tmp_path, monkeypatch, kind, bias):
    monkeypatch.chdir(tmp_path)
    errors = {}
    for corrected in (False, True):
        folder = tmp_path / str(corrected)
        folder.mkdir()
        made, shape = network(kind, bias)
        size = [64, *shape[1:]]
        feeds = {"x": 2 + np.random.default_rng(1).random(size, np.float32)}
        outcome, ready, target, _ = quantized(folder, made, shape, feeds, corrected=corrected)
        error = run_model(target, feeds)["y"] - run_model(ready, feeds)["y"]
        errors[corrected] = np.abs(error.mean(axis=(0, *range(2, error.ndim)))).max()
        assert outcome.notes == (("the biases of 1 nodes are corrected",) if corrected else ())
    assert errors[True] < errors[False] / 20


def test_a_matmul_without_an_addition_has_no_room_for_a_bias(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made, shape = network("MatMul", bias=False)
    feeds = {"x": np.random.default_rng(1).random((64, CHANNELS), np.float32)}
    outcome, *_ = quantized(tmp_path, made, shape, feeds, corrected=True)
    assert outcome.notes == ("the biases of 0 nodes are corrected",)


@pytest.mark.parametrize("opset", [13, 18])
def test_means_are_those_of_the_data_by_channel(tmp_path, monkeypatch, opset):
    monkeypatch.chdir(tmp_path)
    made, shape = network("Conv", bias=True)
    feeds = {"x": np.random.default_rng(1).random((64, *shape[1:]), np.float32)}
    *_, calibration = quantized(tmp_path, made, shape, feeds, corrected=True, opset=opset)
    means = json.loads((calibration / "means.json").read_text())
    assert list(means) == ["x"]
    expected = feeds["x"].astype(np.float64).mean(axis=(0, 2, 3))
    np.testing.assert_allclose(means["x"], expected, rtol=1e-6)
