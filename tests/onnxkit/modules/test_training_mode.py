import warnings

import pytest
import torch

from onnxbuild.onnxkit.export.torch_module import as_module
from onnxbuild.onnxkit.modules.inference import training_notes


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
