"""Sums that saturate on a target without VNNI: replayed on data, reported with the fix."""

import pytest

pytestmark = pytest.mark.slow

MODEL = """
import torch


def load():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with torch.no_grad():  # every pair of weights is 127 and 127
        model[0].weight.fill_(1.0)
        model[2].weight.mul_(0.01)[:, ::2].fill_(0.5)
    return model
"""
DATA = """
import numpy as np


def feeds():
    generator = np.random.default_rng(3)
    for _ in range(20):
        yield {"input": generator.random((2, 4)).astype(np.float32) + 1}


"""
VARIANTS = """quantization:
  dynamic: {mode: dynamic, reduce_range: false, op_types: [MatMul]}
  static: {mode: static, reduce_range: false}
  decided: {mode: dynamic}
  unsigned: {mode: static, weight_type: uint8, reduce_range: false}
  seven: {mode: static, reduce_range: true}
target: {cpu: avx2}
calibration: {data: models/data.py:feeds, samples: 20}
"""


@pytest.fixture
def saturating(project):
    project.write("models/tiny.py", MODEL)
    project.write("models/data.py", DATA)
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", VARIANTS)
    return project


def test_a_planted_matmul_is_reported_with_its_share_and_the_fix_in_both_modes(saturating):
    done = saturating.run("--only", "dynamic/saturation", "--only", "static/saturation")
    assert done.code == 0, done.out + done.err
    for variant in ("dynamic", "static"):
        assert f"WARNING: variant '{variant}': 16-bit sums saturate on the target" in done.out
    assert done.out.count("over 16 samples: ") == 2
    assert "100% (SQNR" in done.out
    assert done.out.count("write `reduce_range: pairs`") >= 2


def test_variants_that_can_not_saturate_are_not_replayed(saturating):
    variant = "decided"
    done = saturating.run("--only", f"{variant}/saturation")
    assert done.code == 2
    assert f"--only {variant}/saturation is no variant or step" in done.err


def test_without_calibration_data_random_inputs_are_reported_as_such(saturating):
    saturating.edit("tiny.yaml", "calibration: {data: models/data.py:feeds, samples: 20}\n", "")
    text = (saturating.folder / "tiny.yaml").read_text()
    kept = [line for line in text.splitlines() if "mode: static" not in line]
    saturating.write("tiny.yaml", "\n".join(kept) + "\n")
    saturating.edit("tiny.yaml", "shape: [batch, 4]", "shape: [batch, 4], low: 1, high: 2")
    done = saturating.run("--only", "dynamic/saturation")
    assert done.code == 0, done.out + done.err
    assert "over 16 random inputs: " in done.out
