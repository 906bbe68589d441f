"""Every step on a model whose weights are in the store, behind a link: as beyond protobuf's 2 GB."""

import hashlib
import json

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DUMMY_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.steps import (
    balance,
    calibrate,
    convert_fp16,
    hessians,
    optimize,
    preprocess,
    quantize_dynamic,
    quantize_static,
    quantize_weights,
    round_weights,
    saturation,
    sensitivity,
)
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear
from tests.steps.graphs import (
    HEADS,
    HIDDEN,
    WORDS,
    config,
    digits,
    run_model,
    sentences,
    tiny_bert,
)

TEXT = (
    DummyInput("input_ids", "int64", ("batch", "sequence"), high=WORDS),
    DummyInput("attention_mask", "int64", ("batch", "sequence"), fill=1),
)
AXES = (Axis("batch", 1, 8, 2), Axis("sequence", 1, 16, 5))
DUMMY = {"data": Entrypoint(DUMMY_DATA), "inputs": TEXT, "axes": AXES, "samples": 3, "seed": 0}


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def stored(folder):
    """The folder's files in a store, and a folder of links to them: how a child sees its inputs."""
    links = folder.with_name(f"{folder.name}-links")
    links.mkdir()
    for path in folder.iterdir():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        blob = folder.parent / "cas" / digest[:2] / digest
        blob.parent.mkdir(parents=True, exist_ok=True)
        if not blob.exists():
            path.rename(blob)
            blob.chmod(0o444)
        (links / path.name).symlink_to(blob)
    return links


@pytest.fixture
def sources(tmp_path):
    """The same model with its weights inside, and in a store."""
    return tiny_bert(tmp_path / "inside"), stored(tiny_bert(tmp_path / "a", external="always"))


def both(kind, params, sources, folder, **inputs):
    """The step on both models; its outputs' folders.

    Args:
        inputs: Name -> the two folders.
    """
    outputs = []
    for n, source in enumerate(sources):
        given = {"model": source} | {name: pair[n] for name, pair in inputs.items()}
        _, context = run_step(kind, params, folder / f"{kind.name}-{n}", given)
        outputs.append(context.output)
    return outputs


def assert_same_model(one, two):
    assert not (one / "model.onnx.data").exists()
    assert (two / "model.onnx.data").stat().st_size
    assert not (two / "model.onnx.data").is_symlink()
    assert load_model(one) == load_model(two)
    for name, found in run_model(two, sentences()).items():
        assert np.array_equal(found, run_model(one, sentences())[name])


def report(output, name="report"):
    return json.loads((output(name) / "report.json").read_text())


@pytest.mark.parametrize("level", ["none", "extended"])
def test_optimize(tmp_path, sources, level):
    options = optimize.OptimizeOptions(
        level=level, model_type="bert", num_heads=HEADS, hidden_size=HIDDEN
    )
    reported = config(tmp_path / "config")
    params = optimize.OptimizeParams(options, TEXT, AXES)
    one, two = both(optimize.KIND, params, sources, tmp_path, config=(reported, reported))
    assert_same_model(one("model"), two("model"))


def test_fp16(tmp_path, sources):
    params = convert_fp16.Fp16Params(convert_fp16.Fp16Options())
    one, two = both(convert_fp16.KIND, params, sources, tmp_path)
    assert_same_model(one("model"), two("model"))


def test_dynamic_with_weights_that_were_rounded_for_it(tmp_path, sources):
    one, two = both(round_weights.KIND, round_weights.RoundParams(**DUMMY), sources, tmp_path)
    assert_same_model(one("model"), two("model"))
    rounded = (one("model"), stored(two("model")))
    options = quantize_dynamic.DynamicOptions(reduce_range=False)
    params = quantize_dynamic.DynamicParams(options)
    one, two = both(quantize_dynamic.KIND, params, sources, tmp_path, rounded=rounded)
    assert_same_model(one("model"), two("model"))
    params = saturation.SaturationParams(**DUMMY, variant="int8")
    quantized = (one("model"), stored(two("model")))
    one, two = both(saturation.KIND, params, quantized, tmp_path, source=sources)
    assert report(one) == report(two)


@pytest.mark.parametrize(
    ("per_channel", "weight_type", "reduced"), [(True, "int8", "pairs"), (False, "uint8", False)]
)
def test_dynamic_with_conv_and_gemm(tmp_path, per_channel, weight_type, reduced):
    options = quantize_dynamic.DynamicOptions(
        reduce_range=reduced, per_channel=per_channel, weight_type=weight_type
    )
    sources = digits(tmp_path / "inside"), stored(digits(tmp_path / "a", external="always"))
    params = quantize_dynamic.DynamicParams(options)
    one, two = both(quantize_dynamic.KIND, params, sources, tmp_path)
    assert (two("model") / "model.onnx.data").exists()
    assert load_model(one("model")) == load_model(two("model"))


@pytest.mark.parametrize("method", ["minmax", "mse"])
def test_static(tmp_path, sources, method):
    one, two = both(preprocess.KIND, preprocess.PreprocessParams(), sources, tmp_path)
    assert_same_model(one("model"), two("model"))
    prepared = (one("model"), stored(two("model")))
    params = calibrate.CalibrateParams(
        DUMMY["data"], TEXT, calibrate.CalibrationOptions(method=method, samples=3), AXES,
        means=True,
    )  # fmt: skip
    one, two = both(calibrate.KIND, params, prepared, tmp_path)
    ranges = [json.loads((o("calibration") / "ranges.json").read_text()) for o in (one, two)]
    assert ranges[0]["ranges"].keys() == ranges[1]["ranges"].keys()
    calibration = (one("calibration"), one("calibration"))
    options = quantize_static.StaticOptions(
        reduce_range=False, activation_type="uint8", bias_correction=True
    )
    params = quantize_static.StaticParams(options)
    one, two = both(quantize_static.KIND, params, prepared, tmp_path, calibration=calibration)
    assert_same_model(one("model"), two("model"))


@pytest.mark.parametrize("method", ["rtn", "gptq"])
def test_weights_in_few_bits(tmp_path, sources, method):
    inputs = {}
    if method == "gptq":
        one, _ = both(hessians.KIND, DataParams(**DUMMY), sources, tmp_path)
        inputs = {"hessians": (one("hessians"), one("hessians"))}
    options = quantize_weights.WeightOptions(
        method=method, op_types=("MatMul", "Gemm", "Gather"), block_size=16
    )
    params = quantize_weights.WeightParams(options)
    one, two = both(quantize_weights.KIND, params, sources, tmp_path, **inputs)
    assert_same_model(one("model"), two("model"))


def test_balance(tmp_path, sources):
    one, two = both(balance.KIND, DataParams(**DUMMY), sources, tmp_path)
    assert_same_model(one("model"), two("model"))


def test_sensitivity(tmp_path, sources):
    script = tmp_path / "data.py"
    script.write_text(
        "import numpy as np\n\ndef feeds():\n"
        f"    ids = np.arange(12).reshape(2, 6) % {WORDS}\n"
        "    yield {'input_ids': ids, 'attention_mask': np.ones_like(ids)}\n"
    )
    params = sensitivity.SensitivityParams(Entrypoint(f"{script}:feeds"), None, TEXT, (), 1)
    one, two = both(sensitivity.KIND, params, sources, tmp_path)
    names = [
        sorted(node["name"] for node in report(output, "sensitivity")["nodes"])
        for output in (one, two)
    ]
    assert names[0] == names[1] != []


def test_the_checker_sees_through_links_and_reads_no_weights(tmp_path, sources):
    _, linked = sources
    assert checker_faults(linked, tmp_path) == []
    hole = tmp_path / "checked" / "model.onnx.data"
    assert hole.stat().st_size == (linked / "model.onnx.data").stat().st_size
    assert hole.stat().st_blocks == 0


def test_weights_shorter_than_the_graph_says_are_an_error(tmp_path):
    save_model(linear(rows=600), tmp_path / "a", external="always")
    data = tmp_path / "a" / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:5000])
    linked = stored(tmp_path / "a")
    short = r"0 to 7200 of .* which has 5000"
    with pytest.raises(StepError, match=short):
        load_model(linked)
    with pytest.raises(StepError, match=short):
        checker_faults(linked, tmp_path)
    with pytest.raises(StepError, match=r"refuses the model .* 5000 are out of bounds"):
        open_session(linked)


def test_weights_that_lie_elsewhere_are_refused(tmp_path):
    save_model(linear(rows=600), tmp_path / "a", external="always")
    made = load_model(tmp_path / "a", weights="left")
    for tensor in made.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "/etc/hostname"
    (tmp_path / "a" / "model.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(StepError, match="which is no name in its folder"):
        load_model(tmp_path / "a")
