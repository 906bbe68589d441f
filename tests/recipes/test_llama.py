"""recipes/llama.yaml, a decoder that was trained: what few bits of its weights cost through the cache."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Project

RECIPES = Path(__file__).parents[2] / "recipes"
MORE = """\
extends: llama.yaml
version: 1
name: few-bits
quantization:
  mixed: {mode: weight_only, scales: search, op_types: [MatMul, Gather], sensitive_in_8_bits: 0.3}
  smallest: {mode: auto, goal: {perplexity_ratio: 1.02, size: smallest}, trials: 4}
"""
DIVERGENCE = {  # most nats that a variant may be from the fp32 model
    "int8": 5e-3, "int8-weights": 1e-3, "int4-weights": 2e-2, "int4-gptq": 2e-2, "mixed": 1e-2,
}  # fmt: skip


@pytest.mark.slow
def test_a_trained_decoder_keeps_its_quality_in_few_bits_and_a_search_finds_the_smallest(tmp_path):
    project = Project(tmp_path / "project", patience_s=600)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(RECIPES, project.folder / "recipes", ignore=ignored)
    project.write("pyproject.toml", "")
    project.write("recipes/few_bits.yaml", MORE)
    done = project("run", "recipes/few_bits.yaml", "--no-bench")
    assert done.code == 0, done.out + done.err
    out = project.folder / "artifacts/out/few-bits"
    found = {each.parent.name: _generated(each) for each in sorted(out.glob("*/gates.json"))}
    assert (found["fp32"]["equal"], found["fp16"]["equal"]) == (1, 1)
    for name, bound in DIVERGENCE.items():
        assert found[name]["kl"] < bound, name
        assert found[name]["perplexity_ratio"] <= 1.03, name
    assert found["int4-gptq"]["kl"] < 0.6 * found["int4-weights"]["kl"]
    assert found["smallest"]["perplexity_ratio"] <= 1.02
    sizes = {name: (out / name / "model.onnx").stat().st_size for name in found}
    assert sizes["smallest"] < 0.6 * sizes["int8"]
    assert sizes["smallest"] < sizes["mixed"] < sizes["int8-weights"]
    search = json.loads((out / "smallest/search.json").read_text())
    fit = [each for each in search["trials"] if not each["missed"]]
    assert search["chosen"] == min(fit, key=lambda each: each["size_bytes"])["name"]
    assert "variant 'smallest': the front: 'weights-4-by-64' " in done.out + done.err


def _generated(gates):
    """The report of the gate `generate`."""
    return json.loads(gates.read_text())["generate/cpu"]
