"""What is known of the inputs of a TorchScript archive, which says their names alone."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from onnxbuild.onnxkit.drafts.torch_draft import draft_of_torchscript

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


class Words(nn.Module):
    """Scores sequences of words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.steps = nn.LSTM(16, 8, batch_first=True)
        self.scores = nn.Linear(8, 3)

    def forward(self, ids, mask):
        steps, _ = self.steps(self.words(ids) * mask.unsqueeze(-1).float())
        return self.scores(steps[:, -1])


class Odd(nn.Module):
    """Nothing in it says that it takes five numbers."""

    def forward(self, x):
        return x.reshape(-1, 5) * 2 if x.shape[1] == 5 else torch.zeros(0)[1]


def saved(make, model, path):
    with warnings.catch_warnings(
        action="ignore"
    ):  # TorchScript is deprecated; tracing warns of branches
        torch.jit.save(make(model.eval()), path)
    return path


@pytest.mark.parametrize(
    "make",
    [torch.jit.script, lambda model: torch.jit.freeze(torch.jit.script(model))],
    ids=["scripted", "frozen"],
)
def test_layers_say_what_a_program_takes(tmp_path, make):
    draft = draft_of_torchscript(saved(make, Words(), tmp_path / "w.pt"), "")
    assert draft.recipe["dummy_inputs"] == {
        "ids": {"dtype": "int64", "shape": ["batch", "sequence"], "low": 0, "high": 50},
        "mask": {"dtype": "int64", "shape": ["batch", "sequence"], "mask": "right"},
    }
    assert draft.recipe["outputs"] == ["output"]
    assert "50 rows" in draft.comments["dummy_inputs.ids"]
    assert not draft.holes


@pytest.mark.parametrize(
    ("layer", "shape"),
    [(nn.Conv2d(6, 8, 3, groups=2), ["batch", 6, 224, 224]), (nn.LayerNorm(4), ["batch", 4])],
    ids=lambda each: type(each).__name__ if isinstance(each, nn.Module) else "",
)
def test_a_first_layer_says_what_a_program_takes(tmp_path, layer, shape):
    path = saved(torch.jit.script, nn.Sequential(layer), tmp_path / "l.pt")
    (found,) = draft_of_torchscript(path, "").recipe["dummy_inputs"].values()
    assert found["shape"] == shape


def test_a_part_is_looked_at_alone(tmp_path):
    path = saved(torch.jit.script, Words(), tmp_path / "w.pt")
    (found,) = draft_of_torchscript(path, "scores").recipe["dummy_inputs"].values()
    assert found["shape"] == ["batch", 8]


def test_what_nothing_says_is_a_hole(tmp_path):
    draft = draft_of_torchscript(saved(torch.jit.script, Odd(), tmp_path / "o.pt"), "")
    assert list(draft.holes) == ["dummy_inputs.x"]
