"""`run: ctc`: the graph gives the tokens of PyTorch's frames, alone and padded, and a wrong one doesn't."""

import json
import subprocess
import sys
import wave
from itertools import groupby

import numpy as np
import pytest
from onnx import load, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.loaders import decoding
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.pipelines.parts import read_values
from tests import tiny_transformers as tiny
from tests.fakes.graph_steps import GraphSteps
from tests.steps.test_greedy_pipeline import assert_the_tokens

pytestmark = pytest.mark.slow

RECIPE = """\
version: 1
name: demo
model: {transformers: weights, task: automatic-speech-recognition}
export: {exporter: torchscript}
quantization: {fp32: none, int8: dynamic}
dynamic_axes: {samples: {min: 100, max: 2000, example: 400}}
pipeline: {max_kl: MAX_KL}
"""
FP32, INT8 = "demo@pipeline:fp32/validate", "demo@pipeline:int8/validate"
WORDS = {"vocab.json": {"|": 0, **{chr(64 + n): n for n in range(1, 60)}}}
MASKED = WORDS | {
    "preprocessor_config.json": {"return_attention_mask": True, "sampling_rate": 2000}
}


def wave2vec(**changes):
    sizes = {"num_hidden_layers": 2, "vocab_size": 60, "pad_token_id": 2, "initializer_range": 1.0}
    return lambda: tiny.wave("Wav2Vec2ForCTC", **sizes | changes)


MODELS = {
    "with a mask": (wave2vec(feat_extract_norm="layer", do_stable_layer_norm=True), MASKED),
    "without": (wave2vec(), {}),
}


def steps_of(folder, name, max_kl="10"):
    make, files = MODELS[name]
    tiny.saved(folder / "weights", make, files=files)
    (folder / "demo.yaml").write_text(RECIPE.replace("MAX_KL", max_kl))
    (folder / "steps").mkdir()
    return GraphSteps(folder / "demo.yaml", folder / "steps")


@pytest.fixture(scope="module", params=MODELS)
def made(request, tmp_path_factory):
    """The steps of a folder."""
    folder = tmp_path_factory.mktemp("ctc")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield steps_of(folder, request.param)


def tokens_of_transformers(row):
    """The tokens of one sound alone, by transformers' model and by what a tokenizer of CTC does."""
    import torch
    from transformers import AutoModelForCTC

    model = AutoModelForCTC.from_pretrained("weights", attn_implementation="eager").eval()
    with torch.no_grad():
        ids = model(torch.from_numpy(row)[None]).logits[0].argmax(-1).tolist()
    return [token for token, _ in groupby(ids) if token != model.config.pad_token_id]


def test_the_graph_gives_the_tokens_of_pytorch_alone_and_padded_in_a_batch(made):
    outcome = made.run(FP32)
    assert outcome.findings == ()
    reference = made.inputs(FP32)["reference"]
    samples = read_values(reference)
    tokens = [each.outputs["tokens"] for each in read_reference(reference)]
    rows = [next(iter(row.values())) for row, *more in samples if not more]
    expected = [tokens_of_transformers(each) for each in rows]
    assert [each[0].tolist() for each in tokens[:8]] == expected
    assert len({token for each in expected for token in each}) >= 8
    assert len({len(each) for each in rows}) > 1
    pairs = [[len(next(iter(each.values()))) for each in rows] for rows in samples[8:]]
    has_mask = "attention_mask" in {each.name for each in made.recipes[0].inputs}
    assert all(first == second for first, second in pairs) is not has_mask


@pytest.mark.always
def test_a_graph_that_is_wrong_fails_and_is_named(made, tmp_path):
    model = load(made.inputs(FP32)["model/acoustic"] / "model.onnx")
    head = next(each for each in model.graph.initializer if each.name.endswith("lm_head.bias"))
    array = numpy_helper.to_array(head)
    head.CopyFrom(numpy_helper.from_array(array[::-1].copy(), head.name))
    save_model(model, tmp_path / "wrong")
    findings = made.run(FP32, model__acoustic=tmp_path / "wrong").findings
    assert "output 'tokens'" in findings[0].where
    assert "component 'acoustic' differs first" in findings[-1].what


def test_fewer_bits_are_judged_by_the_distributions_of_frames_that_are_no_padding(made):
    outcome = made.run(INT8)
    assert outcome.findings == ()
    assert outcome.metrics["kl"] > 0
    assert 0 < outcome.metrics["top1"] <= 1
    args = made.recipes[-1].model.args
    samples = read_values(made.inputs(INT8)["reference"])
    sizes = [len(next(iter(row.values()))) for rows in samples for row in rows]
    frames = [(each - args["receptive_field"]) // args["stride"] + 1 for each in sizes]
    assert outcome.metrics["compared"] == sum(frames)


def test_a_variant_that_is_too_far_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = steps_of(tmp_path, "with a mask", "1e-9")
    (finding, *_) = made.run(INT8).findings
    assert "nats; expected at most 1e-09" in finding.what


def test_the_package_gives_the_tokens_with_numpy_and_onnx_runtime_alone(made, tmp_path):
    package = made.output("demo@pipeline:fp32/package", "bundle")
    assert_the_tokens(package, made.inputs(FP32)["reference"], tmp_path / "outputs")
    (row,) = read_values(made.inputs(FP32)["reference"])[0]
    np.save(tmp_path / "row.npy", row["input_values"])
    command = [sys.executable, "-I", package / "run.py", tmp_path / "row.npy"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ids = tokens_of_transformers(row["input_values"])
    is_named = (package / "tokenizer/vocab.json").is_file()
    names = [" " if each == 0 else chr(64 + each) for each in ids]
    assert said == ("".join(names) if is_named else " ".join(map(str, ids))) + "\n"
    about = json.loads((package / "pipeline.json").read_text())
    assert about["run"]["callable"] == "ctc"
    assert about.get("sound") == ({"form": "normalized", "rate": 2000} if is_named else None)
    if is_named:
        samples = (row["input_values"] / 8 * 2**15).astype("<i2")
        with wave.open(str(tmp_path / "row.wav"), "wb") as file:
            file.setparams((1, 2, 2000, 0, "NONE", ""))
            file.writeframes(samples.tobytes())
        command[-1] = tmp_path / "row.wav"
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        normalized = ((samples - samples.mean()) / samples.std()).astype(np.float32)
        ids = tokens_of_transformers(normalized)
        assert said == "".join(" " if each == 0 else chr(64 + each) for each in ids) + "\n"


@pytest.mark.parametrize("sound", ["", ", sound: {form: samples, rate: 2000}"])
def test_samples_are_wav_files_where_the_recipe_says_how_they_are_read(
    tmp_path, monkeypatch, sound
):
    monkeypatch.chdir(tmp_path)
    samples = np.random.default_rng(0).integers(-9000, 9000, 400).astype("<i2")
    with wave.open("row.wav", "wb") as file:
        file.setparams((1, 2, 2000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    made = steps_of(tmp_path, "without", f"10, samples: '*.wav', count: 1, batches: [1]{sound}")
    if not sound:
        with pytest.raises(StepError, match=r"'row\.wav' is a sound") as error:
            made.output("demo@pipeline:reference", "reference")
        assert "add `sound: {form: samples}` to `pipeline`" in error.value.fix
        return
    ((row,),) = read_values(made.output("demo@pipeline:reference", "reference"))
    assert np.array_equal(row, samples / np.float32(32768))


class Acoustic:
    """A component whose frames are two elements of a row each."""

    def __init__(self, ids):
        self._ids = np.array(ids)

    def acoustic(self, **_):
        return {"logits": np.eye(5)[self._ids]}


PLAN = {
    "inputs": [
        {"name": "x", "dtype": "float32", "shape": ["batch", "length"], "mask": None},
        {"name": "mask", "dtype": "int64", "shape": ["batch", "length"], "mask": "right"},
    ],
    "component": "acoustic",
    "logits": "logits",
}


def test_repeats_are_one_token_unless_a_blank_is_between_and_padding_gives_none():
    parts = Acoustic([[1, 1, 0, 1, 2, 2], [3, 0, 0, 3, 4, 4]])
    rows = [np.ones(12), np.ones(7)]
    found = decoding.ctc(parts, rows, plan=PLAN, blank=0, receptive_field=2, stride=2)
    assert found["tokens"].tolist() == [[1, 1, 2], [3, 0, 0]]


def test_frames_that_the_stride_does_not_give_are_refused():
    with pytest.raises(ValueError, match="2 frames come of a row of 12; a receptive_field of 2"):
        decoding.ctc(
            Acoustic([[1, 2]]), [np.ones(12)], plan=PLAN, blank=0, receptive_field=2, stride=2
        )
