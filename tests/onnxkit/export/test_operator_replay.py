"""Which operator of forward an exporter translates wrongly."""

import inspect

import numpy as np
import pytest
import torch

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.export.exporters import ExportRequest
from onnxbuild.onnxkit.export.operator_replay import wrong_operator, wrong_operator_error

X = np.random.default_rng(0).normal(size=(3, 8)).astype("float32") * 10


class Shifts(torch.nn.Module):
    """torchscript divides, and cuts off towards zero."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        y = self.linear(x)
        whole = torch.relu(y).long() - 5
        return y, (whole >> 1).float()


class Right(torch.nn.Module):
    """Writes to tensors that later calls read."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 4, batch_first=True)

    def forward(self, x):
        y = x * 2
        y[y > 3] = 0
        y += 1
        values, places = torch.sort(y.clamp_(max=2), dim=1)
        return self.lstm(values[None] + places)[0]


def found(module, scratch, exporter="torchscript"):
    with torch.no_grad():
        outputs = module(torch.from_numpy(X.copy()))
    names = tuple(f"y{n}" for n in range(len(outputs) if isinstance(outputs, tuple) else 1))
    request = ExportRequest(
        module=module.eval(),
        inputs=(DummyInput("x", "float32", X.shape),),
        axes=(),
        feeds={"x": X},
        output_names=names,
        opset=18,
        constant_folding=True,
        translations={},
        scratch=scratch,
        where="m:export",
    )
    return wrong_operator(exporter, request, {"x": X})


@pytest.mark.slow  # dynamo is tried, too
def test_the_operator_its_line_and_both_values_are_found(tmp_path):
    torch.manual_seed(0)
    wrong = found(Shifts(), tmp_path)
    lines, first = inspect.getsourcelines(Shifts.forward)
    line = first + next(n for n, text in enumerate(lines) if ">> 1" in text)
    assert (wrong.name, wrong.other) == ("rshift", "dynamo")
    assert wrong.line.endswith(f"test_operator_replay.py:{line}")
    assert wrong.expected == wrong.actual - 1

    error = wrong_operator_error(wrong, "torchscript", "output 'y' differs", "m:e", alone=True)
    assert error.where == wrong.line
    assert error.what.startswith(
        f"output 'y' differs; the torchscript exporter translates 'rshift' at {wrong.line} wrongly: "
    )
    assert error.fix.startswith(
        "write `export: {exporter: dynamo}`, which translates it right; or "
    )
    tried = wrong_operator_error(wrong, "torchscript", "it differs", "m:e", alone=False)
    assert "exporter:" not in tried.fix


def test_no_operator_is_named_where_each_is_right(tmp_path):
    assert found(Right(), tmp_path) is None
