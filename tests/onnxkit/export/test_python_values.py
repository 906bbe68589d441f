"""The line at which forward takes values out of a tensor is named."""

import numpy as np
import pytest
import torch

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.export.python_values import values_error

INPUTS = (DummyInput("x", "float32", ("batch", 4)),)
FEEDS = [{"x": np.full((2, 4), value, np.float32)} for value in (1.0, -1.0)]


class Counted(torch.nn.Module):
    def forward(self, x):
        return x * int((x.numpy() > 0).sum())


class Chosen(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(3.0))

    def forward(self, x):
        return x * self.scale.item() + x.shape[0]


@pytest.mark.parametrize(("module", "how"), [(Counted(), "`.numpy()`"), (Chosen(), "`if`")])
def test_a_value_of_the_inputs_that_python_computes_with_has_its_line(module, how):
    error = values_error(module, INPUTS, FEEDS, "mine:export")
    line = type(module).forward.__code__.co_firstlineno + 1
    assert error.where.endswith(f"test_python_values.py:{line}")
    assert f"takes values out of a tensor by {how}" in error.what


def test_a_constant_is_no_value_of_the_inputs():
    assert values_error(Scaled(), INPUTS, FEEDS, "mine:export") is None
