"""What a user's generator yielded stays what it was, though the generator fills the same arrays again."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.data.reference_feeds import reference_feeds
from onnxbuild.onnxkit.data.user_code import iterate_user

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


def pairs():
    labels, names = np.zeros(2, np.int64), []
    for number in range(3):
        labels[:] = number
        names[:] = [number]
        yield {"x": labels}, [labels, names, "text", None, number]


def test_labels_of_a_batch_are_not_those_of_the_last():
    context = SimpleNamespace(load=lambda _: pairs, where="demo:evaluate")
    kept = list(iterate_user(context, Entrypoint("data.py:pairs")))
    for number, (feeds, (labels, names, *rest)) in enumerate(kept):
        assert feeds["x"].tolist() == labels.tolist() == [number, number]
        assert names == [number]
        assert rest == ["text", None, number]
