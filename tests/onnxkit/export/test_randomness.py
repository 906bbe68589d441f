"""A forward that gives another output each time is named as such, with its line."""

from pathlib import Path

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.export.randomness import refuse_random
from onnxbuild.onnxkit.export.torch_module import make_torch_deterministic, run_module
from tests.steps import random_modules

FEEDS = {"x": np.ones((2, 4), np.float32)}


def checked(name):
    make_torch_deterministic()
    module = random_modules.load(name).eval()
    outputs = run_module(module, FEEDS).outputs
    refuse_random(module, FEEDS, outputs, "m:export")


def line(text):
    lines = Path(random_modules.__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, each in enumerate(lines, 1) if text in each)


@pytest.mark.parametrize(
    ("name", "output", "operator", "text", "fix"),
    [
        ("FunctionalDropout", "dropped", "dropout", "training=True)", "training=self.training"),
        ("TrainsInForward", "output_0", "dropout", "self.dropout(self", "no `.train()` in forward"),
        ("Noise", "output_0", "aten.rand", "torch.rand(hidden", "as an input"),
        ("Sampled", "output_0", "aten.multinomial", "torch.multinomial", "as an input"),
    ],
)  # fmt: skip
def test_random_numbers_are_named_with_output_operator_and_line(name, output, operator, text, fix):
    with pytest.raises(StepError) as caught:
        checked(name)
    assert f"own two runs on the same inputs differ in output '{output}'" in caught.value.what
    assert f"forward draws random numbers ({operator} at " in caught.value.what
    assert caught.value.where.endswith(f"random_modules.py:{line(text)}")
    assert fix in caught.value.fix


def test_pythons_own_generator_is_named():
    with pytest.raises(StepError, match=r"\(Python's or numpy's generator\)"):
        checked("PythonsRandom")


def test_what_is_kept_from_call_to_call_is_no_randomness():
    with pytest.raises(StepError, match="forward keeps something from call to call"):
        checked("Counts")


def test_a_forward_that_seeds_itself_passes():
    checked("SeedsItself")
