"""What becomes of a module before it is exported and run: eager, in eval mode, and what is said of that."""

import warnings

import pytest
import torch

from onnxbuild.onnxkit.export.torch_module import as_module
from onnxbuild.onnxkit.modules.inference import eager, is_compiled, training_notes

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of what torch.compile loads


class Fails(torch.nn.Linear):
    """Tells whether the compiler calls it."""

    def forward(self, x):
        assert not torch.compiler.is_compiling()
        return super().forward(x)


def test_the_module_that_was_compiled_is_given_back_with_its_weights_names():
    module = Fails(4, 2)
    made = torch.compile(module)
    assert is_compiled(made)
    assert eager(made) is module
    assert list(eager(made).state_dict()) == ["weight", "bias"]
    assert not is_compiled(eager(made))


def test_so_are_those_inside_and_those_that_were_compiled_in_place():
    inner, placed = Fails(4, 4), Fails(4, 2)
    placed.compile()
    made = torch.nn.Sequential(torch.nn.Sequential(torch.compile(inner)), placed)
    assert is_compiled(made)
    found = eager(made)
    assert found is made
    assert found[0][0] is inner
    assert not is_compiled(found)
    assert found(torch.zeros(3, 4)).shape == (3, 2)


def test_another_module_stays_as_it_is():
    module = torch.nn.Sequential(torch.nn.Linear(4, 2))
    assert not is_compiled(module)
    assert eager(module) is module


class Net(torch.nn.Module):
    """One layer of each kind."""

    def __init__(self, share=0.5):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.drop = torch.nn.Dropout(share)
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(self.drop(self.norm(x)))


@pytest.mark.parametrize(
    ("module", "layers"),
    [
        (Net(), "1 BatchNorm1d, 1 Dropout"),
        (torch.nn.LSTM(4, 4, num_layers=2, dropout=0.1), "1 LSTM"),
    ],
)
def test_what_eval_mode_changes_is_named(module, layers):
    taken = f"m:load is in training mode; taken in eval mode, which changes {layers}"
    assert training_notes(module, "m:load") == (taken,)
    assert training_notes(module.eval(), "m:load") == ()


@pytest.mark.parametrize("module", [torch.nn.Linear(4, 4), torch.nn.Sequential()])
def test_a_mode_that_changes_nothing_is_not_noted(module):
    assert module.training
    assert training_notes(module, "m:load") == ()


def test_so_it_is_with_programs():
    with warnings.catch_warnings(action="ignore"):
        scripted = [as_module(torch.jit.script(Net().train(mode)), "") for mode in (True, False)]
    assert training_notes(scripted[1], "m.pt") == ()
    assert "changes 1 BatchNorm1d, 1 Dropout" in training_notes(scripted[0], "m.pt")[0]
    x = (torch.randn(3, 4),)
    exported = [as_module(torch.export.export(Net().train(mode), x), "") for mode in (True, False)]
    assert training_notes(exported[1], "m.pt2") == ()
    found = training_notes(exported[0].eval(), "m.pt2")[0]
    assert found.startswith(
        "m.pt2 was exported in training mode (batch_norm, dropout), which stays so"
    )
