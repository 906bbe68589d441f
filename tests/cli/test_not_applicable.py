"""A search over a model that some trials are not applicable to, through the command."""

import json

import pytest

pytestmark = pytest.mark.slow

CONVOLUTIONS = """
import numpy as np
import torch


def load():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU()).eval()


def feeds():
    generator = np.random.default_rng(7)
    for _ in range(20):
        yield {"input": generator.standard_normal((1, 3, 8, 8)).astype(np.float32)}
"""
RECIPE = """
version: 1
name: tiny
model: {entrypoint: models/tiny.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 3, 8, 8]}
outputs: [features]
dynamic_axes:
  batch: {min: 1, max: 4, example: 2}
opset: 18
calibration: {data: "models/tiny.py:feeds"}
fidelity: {data: "models/tiny.py:feeds"}
quantization:
  small: {mode: auto, trials: 3, include: [weight_only, static], goal: {cosine_mean: 0.9}, validate: {cosine_min: 0.5}}
benchmark: {warmup: 2, min_samples: 20, max_time_s: 1, baseline: false}
"""
LEFT_OUT = "left out tiny:small/weights-8/quantize: nothing was quantized"


@pytest.fixture
def convolutions(project):
    project.write("models/tiny.py", CONVOLUTIONS)
    project.write("tiny.yaml", RECIPE)
    return project


def test_a_search_goes_on_without_the_trials_that_are_not_applicable(convolutions):
    done = convolutions.run()
    assert done.code == 0, done.out + done.err
    assert LEFT_OUT in done.out
    assert (
        "variant 'small': trial 'weights-8' is left out: not applicable to this model" in done.out
    )
    bundle = convolutions.folder / "artifacts/out/tiny/small"
    assert json.loads((bundle / "search.json").read_text())["unfit"] == ["weights-8"]
    assert "up to date" in convolutions.run().out
    (convolutions.folder / "models/tiny.py").write_text(f"# edited\n{CONVOLUTIONS}")
    again = convolutions.run("--only", "small")
    assert (again.code, again.ran) == (0, [])
    assert LEFT_OUT in again.out
    planned = convolutions("plan", "tiny.yaml").out
    assert "left out tiny:small/weights-8/fidelity" in planned
    why = convolutions("why", "tiny.yaml:small/weights-8/fidelity").out
    assert "is left out: nothing was quantized" in why
    assert convolutions("reproduce", "tiny.yaml").code == 0
