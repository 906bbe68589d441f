"""Values that dummies never have."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.export_check import run_probes
from onnxbuild.onnxkit.export.value_probes import check_values, value_probes
from onnxbuild.onnxkit.model.model_files import save_model

BATCH = Axis("batch", 1, 8, 3)
X = (DummyInput("x", "float32", ("batch", 4)),)


class Piecewise(torch.nn.Module):
    """What the graph computes below 20, and `beyond` above."""

    def __init__(self, beyond):
        super().__init__()
        self.beyond = beyond

    def forward(self, x):
        return torch.where(x > 20, self.beyond(x), torch.relu(x))


def graph():
    value = helper.make_tensor_value_info
    return helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "g",
            [value("x", TensorProto.FLOAT, ["batch", 4])],
            [value("y", TensorProto.FLOAT, ["batch", 4])],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )


def check(folder, module, samples=(), *, explain=lambda feeds, reason: None):
    save_model(graph(), folder)
    probes = run_probes(module, X, (BATCH,), ("y",), "m:export")
    check_values(folder, probes, value_probes(probes, samples, "m:export"), "m:export", explain)


def test_a_difference_on_large_values_alone_is_found(tmp_path):
    with pytest.raises(StepError, match="on inputs times 100 output 'y' differs from PyTorch"):
        check(tmp_path, Piecewise(lambda x: x * 2))


def test_the_operator_to_blame_is_reported_instead(tmp_path):
    def explain(feeds, reason):
        assert feeds["x"].max() > 20
        return StepError(f"{reason}; it is the relu")

    with pytest.raises(StepError, match="it is the relu"):
        check(tmp_path, Piecewise(lambda x: x * 2), explain=explain)


@pytest.mark.parametrize("beyond", [lambda x: x * torch.nan, lambda x: x * torch.inf])
def test_values_that_pytorch_has_none_for_are_not_compared(tmp_path, beyond):
    check(tmp_path, Piecewise(beyond))


def test_what_another_precision_changes_is_rounding(tmp_path):
    check(tmp_path, Piecewise(lambda x: x + (x + 1e9 - 1e9 - x).abs()))


def test_values_that_forward_refuses_are_left_out(tmp_path):
    def refuse(x):
        assert not (x > 20).any()
        return x

    check(tmp_path, Piecewise(refuse))


def test_the_users_samples_are_compared(tmp_path):
    class Rare(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x) * (x != 9)

    sample = ("sample-00 of data.py:samples", {"x": np.full((2, 4), 9, np.float32)})
    check(tmp_path, Rare())
    with pytest.raises(StepError) as caught:
        check(tmp_path, Rare(), [sample])
    assert caught.value.what.startswith("on sample-00 of data.py:samples output 'y' differs from ")
    assert "choose by values" in caught.value.fix
