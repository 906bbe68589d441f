"""`run: greedy`: folders with an encoder and a decoder give the tokens of `generate`, graphs that are wrong in one place don't."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import load, numpy_helper

from onnxbuild.onnxkit.data.array_files import read_arrays
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.pipelines.parts import read_values
from tests import tiny_transformers as tiny
from tests.fakes.graph_steps import GraphSteps
from tests.steps.encoder_decoders import MODELS

pytestmark = pytest.mark.slow

RECIPE = """\
version: 1
name: demo
model: {transformers: weights}
export: {exporter: torchscript}
benchmark: {max_time_s: 0.3, warmup: 1, threads: 1}
quantization: {fp32: none, int8: dynamic}
pipeline: {tokens: 24, max_kl: MAX_KL}
"""
FP32, INT8 = "demo@pipeline:fp32/validate", "demo@pipeline:int8/validate"


def steps_of(folder, name, max_kl="10"):
    tiny.saved(folder / "weights", MODELS[name])
    (folder / "demo.yaml").write_text(RECIPE.replace("MAX_KL", max_kl))
    (folder / "steps").mkdir()
    return GraphSteps(folder / "demo.yaml", folder / "steps")


@pytest.fixture(scope="module", params=MODELS)
def made(request, tmp_path_factory):
    """The steps of a folder."""
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield steps_of(folder, request.param)


def generated(folder, rows):
    """Tokens of transformers' own generate, for one row at a time."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq, GenerationConfig

    sounds = "input_features" in rows[0]
    model = (AutoModelForSpeechSeq2Seq if sounds else AutoModelForSeq2SeqLM).from_pretrained(
        folder / "weights", attn_implementation="eager"
    )
    start = model.config.decoder_start_token_id
    model.generation_config = GenerationConfig(decoder_start_token_id=start, pad_token_id=0)
    found = []
    for row in rows:
        inputs = {name: torch.from_numpy(each)[None] for name, each in row.items()}
        with torch.no_grad():
            tokens = model.eval().generate(**inputs, max_new_tokens=24, do_sample=False)
        found.append(tokens[0, -24:].tolist())
    return found


def test_the_graphs_give_the_tokens_of_generate_alone_and_padded_in_a_batch(made):
    outcome = made.run(FP32)
    assert outcome.findings == ()
    assert outcome.metrics["equal_min"] == 1
    reference = made.inputs(FP32)["reference"]
    samples = read_values(reference)
    assert [len(each) for each in samples] == [1] * 8 + [2] * 4
    tokens = [each.outputs["tokens"] for each in read_reference(reference)]
    alone = np.concatenate(tokens[:8])
    assert len(set(alone.ravel().tolist())) >= 8
    assert np.array_equal(alone, np.concatenate(tokens[8:]))
    assert alone.tolist() == generated(Path(), [row for (row,) in samples[:8]])


def swapped(folder, source, first, second):
    """A model whose nodes take one input for another."""
    model = load(source / "model.onnx")
    names = {first: second, second: first}
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    save_model(model, folder)
    return folder


MUTANTS = {
    "cross key for cross value": ("past_key_values.1.cross_key", "past_key_values.1.cross_value"),
    "layers swapped": ("past_key_values.0.cross_key", "past_key_values.1.cross_key"),
    "own key for own value": ("past_key_values.0.key", "past_key_values.0.value"),
}


@pytest.mark.always
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_decoder_that_is_wrong_in_its_caches_fails_and_is_named(made, mutant, tmp_path):
    right = made.inputs(FP32)["model/decoder"]
    wrong = swapped(tmp_path / "wrong", right, *MUTANTS[mutant])
    first, named = made.run(FP32, model__decoder=wrong).findings[:2]
    assert "output 'tokens'" in first.where
    assert "component 'decoder' differs first" in named.what


def test_fewer_bits_are_judged_by_their_distributions_on_pytorchs_tokens(made):
    outcome = made.run(INT8)
    assert outcome.findings == ()
    assert outcome.metrics["kl"] > 0
    assert 0 < outcome.metrics["top1"] <= 1
    assert outcome.metrics["compared"] == (8 + 8) * 24


def test_a_variant_without_rounding_diverges_by_nothing_and_a_rounded_one_by_more_than_is_allowed(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    made = steps_of(tmp_path, "bart", "1e-6")
    exact = made.inputs(INT8)
    same = made.run(
        INT8, model__decoder=exact["exact/decoder"], model__encoder=exact["exact/encoder"]
    )
    assert (same.findings, same.metrics["kl"], same.metrics["top1"]) == ((), 0, 1)
    rounded = load(exact["exact/decoder"] / "model.onnx")
    for each in rounded.graph.initializer:
        array = numpy_helper.to_array(each)
        if array.ndim == 2 and array.dtype == np.float32 and array.any():
            step = np.abs(array).max() / 8
            each.CopyFrom(numpy_helper.from_array(np.round(array / step) * step, each.name))
    save_model(rounded, tmp_path / "rounded")
    found = made.run(INT8, model__decoder=tmp_path / "rounded")
    assert "nats; expected at most 1e-06" in found.findings[0].what


def test_a_benchmark_has_tokens_a_second_by_rows_next_to_pytorch(made):
    outcome = made.run("demo@pipeline:benchmark")
    report = json.loads(
        (made.output("demo@pipeline:benchmark", "report") / "report.json").read_text()
    )
    shown = [(each["point"], each["kind"], each["items"]) for each in report["points"]]
    assert shown == [("batch=1", "tokens", 24), ("batch=2", "tokens", 48)]
    for point in report["points"]:
        assert set(point["results"]) == {"pytorch", "fp32", "int8"}
        for each in point["results"].values():
            assert {name: part["calls"] for name, part in each["parts"].items()} == {
                "encoder": 1,
                "decoder": 24,
            }
            assert each["throughput_items_per_s"] == pytest.approx(
                point["items"] / each["p50_ms"] * 1e3, rel=1e-3
            )
    assert outcome.metrics["variants"].keys() == {"pytorch", "fp32", "int8"}


def assert_the_tokens(package, reference, outputs):
    """A package's run.py, by itself, gives the tokens of a reference."""
    done = subprocess.run(
        [sys.executable, "-I", package / "run.py", "--outputs", outputs],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for each in read_reference(reference):
        found = read_arrays(outputs / f"{each.name}.npz")
        assert np.array_equal(found["tokens"], each.outputs["tokens"])


def test_the_package_gives_the_tokens_with_numpy_and_onnx_runtime_alone(made, tmp_path):
    package = made.output("demo@pipeline:fp32/package", "bundle")
    assert_the_tokens(package, made.inputs(FP32)["reference"], tmp_path / "outputs")
    about = json.loads((package / "pipeline.json").read_text())
    assert about["run"]["callable"] == "greedy"


SEARCHED = """\
version: 1
name: demo
model: {transformers: weights}
export: {exporter: torchscript}
pipeline: {tokens: 12, count: 4, batches: [1]}
sensitivity: {samples: 2}
components:
  decoder:
    quantization:
      fp32: none
      int8: {mode: dynamic, keep_most_sensitive: 0.1}
      small: {mode: auto, goal: {perplexity_ratio: 1.5, size: smallest}, trials: 4}
"""


def test_a_component_is_ranked_and_searched_for_by_its_perplexity_in_the_whole(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    tiny.saved(tmp_path / "weights", MODELS["bart"])
    (tmp_path / "demo.yaml").write_text(SEARCHED)
    (tmp_path / "steps").mkdir()
    made = GraphSteps(tmp_path / "demo.yaml", tmp_path / "steps")
    ranking = made.graph.steps["demo@decoder:int8/quantize"].inputs["sensitivity"].step
    outcome = made.run(ranking)
    report = json.loads((made.output(ranking, "sensitivity") / "report.json").read_text())
    assert (report["ranked_by"], report["samples"]) == ("kl", 2)
    worst = report["nodes"][0]
    assert worst["name"] == outcome.metrics["most_sensitive"]
    assert worst["drop"] > 0
    # one row of the decoder's samples is one prompt, in batches of any size
    trial = "demo@decoder:small/weights-4-by-64/generate"
    metrics = made.run(trial).metrics
    rows = json.loads((made.output(trial, "report") / "report.json").read_text())["by_prompt"]
    assert [each["prompt"] for each in rows] == [0, 1, 2, 3]
    mean = np.exp(np.mean([each["loss"] for each in rows]))
    assert mean == pytest.approx(metrics["perplexity_ratio"])
    made.run("demo@decoder:small/choose")
    search = json.loads(
        (made.output("demo@decoder:small/choose", "search") / "report.json").read_text()
    )
    figures = {each["name"]: each["choosing"]["perplexity_ratio"] for each in search["trials"]}
    assert figures["weights-4-by-64"] == pytest.approx(metrics["perplexity_ratio"])
    assert (
        search["chosen"]
        == min(
            (each for each in search["trials"] if not each["missed"]),
            key=lambda e: e["size_bytes"],
        )["name"]
    )


SAMPLED = """\
pipeline: {run: sample, temperature: 20, top_p: 0.95, seed: 7, suppress_tokens: [10, 46], count: 4}
quantization: {fp32: none}
"""


def test_drawn_tokens_are_equal_on_both_sides_and_none_is_a_suppressed_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.saved(tmp_path / "weights", MODELS["t5"])
    (tmp_path / "demo.yaml").write_text(RECIPE.partition("quantization")[0] + SAMPLED)
    (tmp_path / "steps").mkdir()
    made = GraphSteps(tmp_path / "demo.yaml", tmp_path / "steps")
    outcome = made.run(FP32)
    assert outcome.findings == ()
    assert outcome.metrics["equal_min"] == 1
    points = read_reference(made.inputs(FP32)["reference"])
    tokens = np.concatenate([each.outputs["tokens"] for each in points])
    assert not np.isin(tokens, [10, 46]).any()


CALIBRATED = """\
version: 1
name: demo
model: {transformers: weights}
export: {exporter: torchscript}
components:
  decoder:
    quantization: {fp32: none, int8: static}
    calibration: {data: pipeline, samples: 20}
    reference: {samples: pipeline, max_samples: 6}
"""


def test_a_component_is_calibrated_and_judged_on_what_really_goes_into_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.saved(tmp_path / "weights", MODELS["bart"])
    (tmp_path / "demo.yaml").write_text(CALIBRATED)
    (tmp_path / "steps").mkdir()
    made = GraphSteps(tmp_path / "demo.yaml", tmp_path / "steps")
    (calibrate,) = (n for n, each in made.graph.steps.items() if each.kind == "calibrate")
    assert made.run(calibrate).metrics["samples"] == 20
    calls = made.inputs(calibrate)["calls"] / "calls/decoder"
    keys = [point.feeds["past_key_values.0.key"] for point in read_reference(calls)]
    ranges = json.loads((made.output(calibrate, "calibration") / "ranges.json").read_text())
    low, high = ranges["ranges"]["past_key_values.0.key"]
    assert low >= min(each.min(initial=0) for each in keys)
    assert 0 < high <= max(each.max(initial=0) for each in keys)
    points = list(read_reference(made.output("demo@decoder:reference", "reference")))
    real = [each for each in points if each.name.startswith("sample-")]
    assert len({each.sizes["past"] for each in real}) > 3
    assert {each.sizes["batch"] for each in real} == {1, 2}
    assert "calls" not in made.graph.steps["demo@encoder:reference"].inputs
