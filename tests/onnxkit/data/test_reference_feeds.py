"""The feeds of a reference: real samples stay what they were when they were yielded."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.data.reference_feeds import reference_feeds

INPUTS = (DummyInput("x", "float32", (2,)),)


def one_array():
    buffer = np.zeros(2, np.float32)
    for number in range(3):
        buffer[:] = number
        yield {"x": buffer}


def one_tensor():
    buffer = torch.zeros(2)
    for number in range(3):
        buffer.fill_(number)
        yield {"x": buffer}


def one_mapping():
    sample = {}
    for number in range(3):
        sample["x"] = np.full(2, number, np.float32)
        yield sample


@pytest.mark.parametrize("samples", [one_array, one_tensor, one_mapping])
def test_a_generator_may_fill_the_same_arrays_for_each_sample(samples):
    context = SimpleNamespace(load=lambda _: samples, where="demo:reference")
    found = reference_feeds(
        context, INPUTS, (), points=(), seed=0, samples=Entrypoint("data.py:rows"), max_samples=16
    )
    values = [feeds["x"].tolist() for name, _, feeds in found if name.startswith("sample-")]
    assert values == [[0, 0], [1, 1], [2, 2]]
