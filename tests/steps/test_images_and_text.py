"""A model of images and text as three components: the tokens of `generate` with no image, one and two."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.pipelines.parts import read_values
from tests.fakes.graph_steps import GraphSteps
from tests.steps import llava

RECIPE = """\
version: 1
name: llava
export: {exporter: torchscript}
components:
  vision:
    model: llava.py:vision
    dummy_inputs: {pixel_values: {dtype: float32, shape: [images, 3, 8, 8]}}
    outputs: [patches]
    dynamic_axes: {images: {min: 1, max: 4, example: 2}}
  embedder:
    model: llava.py:embedder
    dummy_inputs:
      input_ids: {dtype: int64, shape: [batch, sequence], high: 63}
      patches: {dtype: float32, shape: [all_patches, 32]}
    outputs: [embeds]
    dynamic_axes:
      batch: {min: 1, max: 4, example: 2}
      sequence: {min: 1, max: 64, example: 8}
      all_patches: {min: 0, max: 16, example: 8}
  decoder:
    model: llava.py:decoder
    dummy_inputs:
      inputs_embeds: {dtype: float32, shape: [batch, sequence, 32], from: embedder.embeds}
      attention_mask: {dtype: int64, shape: [batch, past + sequence], mask: left}
      position_ids: {dtype: int64, shape: [batch, sequence], arange: past}
    state: {past_key_values: {each: {layer: 2, part: [key, value]}, shape: [batch, 2, past, 8]}}
    outputs: [logits]
    dynamic_axes:
      batch: {min: 1, max: 4, example: 2}
      sequence: {min: 1, max: 64, example: 8}
      past: {min: 0, max: 60, example: 10}
pipeline: {run: llava.py:describe, samples: llava.py:samples}
"""


def generated(samples):
    """Tokens of transformers' generate."""
    import torch

    model = llava.whole()
    model.generation_config.eos_token_id = None
    found = []
    for each in samples:
        ids = torch.from_numpy(each["ids"])[None]
        pixels = {"pixel_values": torch.from_numpy(each["pixels"])} if len(each["pixels"]) else {}
        with torch.no_grad():
            tokens = model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False,
                pad_token_id=0, **pixels,
            )  # fmt: skip
        found.append(tokens[0, -24:].tolist())
    return found


@pytest.mark.slow
def test_texts_with_no_image_one_and_two_go_on_as_by_generate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(llava.__file__), tmp_path)
    (tmp_path / "llava.yaml").write_text(RECIPE)
    (tmp_path / "steps").mkdir()
    made = GraphSteps(tmp_path / "llava.yaml", tmp_path / "steps")
    gate = "llava@pipeline:fp32/validate"
    outcome = made.run(gate)
    assert outcome.findings == ()
    samples = list(llava.samples())
    expected = generated(samples)
    found = [
        each.outputs["tokens"].tolist() for each in read_reference(made.inputs(gate)["reference"])
    ]
    assert found == expected
    assert len({token for each in found for token in each}) >= 8
    blank = {**samples[1], "pixels": np.zeros_like(samples[1]["pixels"])}
    assert generated([blank]) != expected[1:2]  # images count
    for name in ("vision", "embedder", "decoder"):
        assert made.run(f"llava@{name}:fp32/validate").findings == ()
    assert made.run("llava@decoder:connections").findings == ()


@pytest.mark.slow
def test_the_language_model_alone_is_a_folder_that_gives_the_same_logits(tmp_path):
    import torch
    import transformers

    page = (Path(__file__).parents[2] / "docs/generation.md").read_text("utf-8")
    (code,) = (each for each in page.split("```") if "AutoModelForImageTextToText" in each)
    whole = llava.whole()
    whole.save_pretrained(tmp_path / "weights/llava")
    names = {
        name: getattr(transformers, name)
        for name in ("AutoModelForImageTextToText", "AutoModelForCausalLM")
    }
    exec(code.removeprefix("python\n").replace("weights/", f"{tmp_path}/weights/"), names)
    decoder = names["AutoModelForCausalLM"].from_pretrained(tmp_path / "weights/llava-text").eval()
    ids = torch.arange(3, 12)[None]
    with torch.no_grad():
        assert torch.allclose(decoder(ids).logits, whole(input_ids=ids).logits, atol=1e-5)
    assert type(decoder).__name__ == "LlamaForCausalLM"


FOLDER = """\
version: 1
name: llava
model: {transformers: weights}
export: {exporter: torchscript}
quantization: {fp32: none, int8: dynamic}
pipeline: {max_kl: 10}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The steps of a folder."""
    folder = tmp_path_factory.mktemp("llava")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        llava.whole().save_pretrained(folder / "weights")
        (folder / "llava.yaml").write_text(FOLDER)
        (folder / "steps").mkdir()
        yield GraphSteps(folder / "llava.yaml", folder / "steps")


@pytest.mark.slow
def test_a_folder_gives_the_tokens_of_generate_alone_and_padded_in_a_batch(built):
    gate = "llava@pipeline:fp32/validate"
    assert built.run(gate).findings == ()
    reference = built.inputs(gate)["reference"]
    samples = read_values(reference)
    assert [len(each) for each in samples] == [1] * 8 + [2] * 4
    rows = [row for (row,) in samples[:8]]
    assert [len(each["pixel_values"]) for each in rows] == [0, 1, 2, 0, 1, 2, 0, 1]
    tokens = [each.outputs["tokens"] for each in read_reference(reference)]
    alone = np.concatenate(tokens[:8])
    assert np.array_equal(alone, np.concatenate(tokens[8:]))
    assert alone.tolist() == generated(
        [{"ids": each["input_ids"], "pixels": each["pixel_values"]} for each in rows]
    )
    for name in ("vision", "embedder", "decoder"):
        assert built.run(f"llava@{name}:fp32/validate").findings == ()
    for name in ("embedder", "decoder"):
        assert built.run(f"llava@{name}:connections").findings == ()


@pytest.mark.slow
def test_a_sample_with_other_image_tokens_than_its_images_are_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    llava.whole().save_pretrained(tmp_path / "weights")
    (tmp_path / "rows.py").write_text(
        "import numpy as np\n"
        "def rows():\n"
        "    pixels = np.zeros((1, 3, 8, 8), np.float32)\n"
        "    yield {'input_ids': np.array([5] + [63] * 4 + [6]), 'pixel_values': pixels}\n"
        "    yield {'input_ids': np.array([5] + [63] * 3 + [6]), 'pixel_values': pixels}\n"
    )
    text = FOLDER.replace("max_kl: 10", "samples: rows.py:rows, count: 2")
    (tmp_path / "llava.yaml").write_text(text)
    (tmp_path / "steps").mkdir()
    made = GraphSteps(tmp_path / "llava.yaml", tmp_path / "steps")
    with pytest.raises(StepError) as caught:
        made.run("llava@pipeline:reference")
    assert caught.value.what == (
        "sample 1: the rows have 3 image tokens, of id 63, and their images give 4 features"
    )
    assert caught.value.fix == "let a row have 4 times the id 63 for each of its images"


@pytest.mark.slow
def test_few_bits_of_a_folder_are_judged_by_their_distributions(built):
    outcome = built.run("llava@pipeline:int8/validate")
    assert outcome.findings == ()
    assert outcome.metrics["kl"] > 0
    assert outcome.metrics["compared"] == (8 + 8) * 24


@pytest.mark.slow
def test_the_package_runs_on_a_row_of_ids_and_images(built, tmp_path):
    package = built.output("llava@pipeline:fp32/package", "bundle")
    assert built.run("llava@pipeline:fp32/run").findings == ()
    (row,) = read_values(built.inputs("llava@pipeline:fp32/validate")["reference"])[1]
    np.savez(tmp_path / "row.npz", **row)
    expected = generated([{"ids": row["input_ids"], "pixels": row["pixel_values"]}])[0]
    folder = shutil.copytree(package, tmp_path / "package")

    def ran(*arguments):
        command = [sys.executable, folder / "run.py", *arguments, tmp_path / "row.npz"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def shown():
        return ran().stdout.split()

    assert shown() == list(map(str, expected))
    most = built.graph.steps["llava@pipeline:fp32/package"].params.parts[-1].most["past"]
    beyond = ran("--tokens", str(most + 2))
    assert beyond.stdout.split()[: len(expected)] == list(map(str, expected))
    assert beyond.stderr.strip() == (
        f"'decoder' takes up to {most} of 'past'; it is given {most + 1}: ask for fewer tokens, or give a shorter row"
    )
    assert beyond.returncode == 1
    np.savez(
        tmp_path / "bad.npz",
        **row | {"input_ids": row["input_ids"][:-1]} | {"pixel_values": row["pixel_values"][:0]},
    )
    for file, what in (("bad.npz", "image tokens"), ("none.npz", "No such file")):
        failed = ran("--tokens", "2", tmp_path / file)
        assert failed.returncode == 1
        assert what in failed.stderr.strip().splitlines()[0]
    (folder / "tokenizer").mkdir(exist_ok=True)
    end = {"eos_token_id": [expected[5], -1]}
    (folder / "tokenizer/generation_config.json").write_text(json.dumps(end))
    assert shown() == list(map(str, expected[: expected.index(expected[5])]))
