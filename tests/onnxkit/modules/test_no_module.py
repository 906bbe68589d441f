"""A callable that returns no module: what it returned, what fits, and what to write for it."""

import warnings

import onnx
import pytest
import torch

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.export.torch_module import as_module, check_signature
from onnxbuild.onnxkit.modules.no_module import no_module


def a(package, name="Thing"):
    """An object of a class that says it is from a package, which need not be installed."""
    return type(name, (), {"__module__": f"{package}.parts"})()


@pytest.mark.parametrize(
    ("made", "what", "fix"),
    [
        (onnx.ModelProto(), "a ModelProto of onnx;", "write `frontend: onnx`"),
        ("model.jit", "a str;", "`model: {torchscript: FILE}`, or return `torch.jit.load(path)`"),
        (a("xgboost"), "a Thing of xgboost;", "write `frontend: xgboost`"),
        (a("keras", "Model"), "a Model of keras;",
         "`model: {keras: FILE.keras}`; or set KERAS_BACKEND=torch"),
        ((torch.nn.Linear(2, 2), 3), "a tuple;", "return the module alone: the item 0"),
        (None, "None;", "return the module itself"),
    ],
)  # fmt: skip
def test_each_kind_of_model_has_its_line(made, what, fix):
    error = no_module(made, "m.py:load", "demo:export")
    assert error.what.startswith(
        f"m.py:load returned {what} expected a torch.nn.Module, a ScriptModule"
    )
    assert fix in error.fix


class Net(torch.nn.Module):
    """A flag, and an argument by keyword alone."""

    def forward(self, x, flag: bool = True, *, scale):
        return x * scale if flag else x


def test_programs_that_a_callable_returns_take_their_inputs_by_name():
    x, scale = torch.randn(3, 2), torch.full((2,), 3.0)
    exported = torch.export.export(Net(), (x, False), {"scale": scale})
    with warnings.catch_warnings(action="ignore"):
        scripted = torch.jit.script(Net())
    for made, expected in ((exported, x), (scripted, x * scale)):
        module = as_module(made, "demo:export")
        check_signature(
            module, (DummyInput("x", "float32", (3, 2)), DummyInput("scale", "float32", (2,))), ""
        )
        torch.testing.assert_close(module(x=x, scale=scale), expected)
        assert module.requires_grad_(requires_grad=False).eval() is module
        with pytest.raises(StepError, match="requires 'scale'"):
            check_signature(module, (DummyInput("x", "float32", (3, 2)),), "")


def test_programs_that_take_more_than_tensors_are_refused():
    class Rate(torch.nn.Module):
        def forward(self, x: torch.Tensor, rate: int):
            return x * rate

    class Parts(torch.nn.Module):
        def forward(self, parts):
            return parts["x"]

    with warnings.catch_warnings(action="ignore"):
        scripted = torch.jit.script(Rate())
    with pytest.raises(StepError, match="takes 'rate', of the type int"):
        as_module(scripted, "demo:export")
    exported = torch.export.export(Parts(), ({"x": torch.ones(2)},))
    with pytest.raises(StepError, match="takes tensors in a list, tuple or dict"):
        as_module(exported, "demo:export")
