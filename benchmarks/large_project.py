"""A project with a GPT-2 of any size, random weights, in every mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

WIDTH, HEADS, POSITIONS, VOCABULARY = 1280, 20, 64, 50257
"""Of GPT-2 large, but for the positions."""

_LAYER_PARAMETERS = 12 * WIDTH * WIDTH + 13 * WIDTH

MODEL = f'''\
"""GPT-2 of any depth, its weights drawn by seed."""

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel


class NextTokens(torch.nn.Module):
    """The logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids).logits


def load(layers):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size={VOCABULARY}, n_positions={POSITIONS}, n_embd={WIDTH}, n_layer=layers,
        n_head={HEADS}, use_cache=False, attn_implementation="eager", bos_token_id=0,
        eos_token_id=0,
    )
    return NextTokens(GPT2LMHeadModel(config).eval())


def feeds(count=4):
    for n in range(count):
        ids = np.random.default_rng(n).integers(0, {VOCABULARY}, (1, 16))
        yield {{"input_ids": ids}}
'''

RECIPE = """\
version: 1
name: large
model: {{entrypoint: models/large.py:load, args: {{layers: {layers}}}}}
dummy_inputs:
  input_ids: {{dtype: int64, shape: [batch, sequence], low: 0, high: {vocabulary}}}
outputs: [logits]
dynamic_axes:
  batch: {{min: 1, max: 2, example: 1}}
  sequence: {{min: 1, max: 16, example: 8}}
opset: 18
calibration:
  data: models/large.py:feeds
  samples: 4
quantization:
{variants}
# random weights say nothing of accuracy; whether anything is refused is not the question here
validate: {{int8: {{cosine_min: -1.0}}, int4: {{cosine_min: -1.0}}, fp16: {{atol: 10.0, rtol: 1.0}}}}
benchmark: {{max_time_s: 2.0, min_samples: 3, warmup: 1}}
"""

SENSITIVITY = """\
fidelity: {data: models/large.py:feeds, samples: 2}
sensitivity: {samples: 2, runs: 20}
"""
"""Further sections for the mode `sensitive`: as few runs as possible, since memory is measured."""

MODES = {
    "fp32": "none",
    "fp16": "fp16",
    "mixed": "{mode: fp16, keep_fp32: 2}",
    "dynamic": "dynamic",
    "balanced": "{mode: dynamic, balance: true}",
    "rounded": "{mode: dynamic, rounding: gptq}",
    "sensitive": "{mode: dynamic, keep_most_sensitive: 0.05}",
    "static": "static",
    "static-balanced": "{mode: static, balance: true}",
    "corrected": "{mode: static, bias_correction: true}",
    "int8-weights": "{mode: weight_only, bits: 8}",
    "int4-weights": "{mode: weight_only, bits: 4}",
    "int4-hqq": "{mode: weight_only, bits: 4, method: hqq}",
    "int4-gptq": "{mode: weight_only, bits: 4, method: gptq}",
}


def layers_of(gib: float) -> int:
    """Layers that make a model of about `gib` GiB in fp32; one at least."""
    embedded = (VOCABULARY + POSITIONS) * WIDTH
    return max(1, round((gib * 2**30 / 4 - embedded) / _LAYER_PARAMETERS))


def write_project(folder: Path, layers: int, modes: Sequence[str]) -> Path:
    """The recipe's path; what is there already is left as it is where it says the same."""
    variants = "\n".join(f"  {name}: {MODES[name]}" for name in modes)
    recipe = RECIPE.format(layers=layers, vocabulary=VOCABULARY, variants=variants)
    recipe += SENSITIVITY if "sensitive" in modes else ""
    for name, text in (("pyproject.toml", ""), ("models/large.py", MODEL), ("large.yaml", recipe)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return folder / "large.yaml"
