"""A model of images and text as three components: the tokens of `generate` with no image, one and two."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from onnxbuild.onnxkit.data.reference_files import read_reference
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
