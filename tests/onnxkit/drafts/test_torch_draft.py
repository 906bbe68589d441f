"""What is known of a module's inputs, by its layers, its annotations and what it gives itself."""

from __future__ import annotations

import warnings
from typing import Annotated

import pytest
import torch
from torch import Tensor, nn

from onnxbuild.onnxkit.drafts.torch_draft import draft_of_module, draft_of_torchscript


def inputs_of(module):
    return dict(draft_of_module(module).recipe["dummy_inputs"])


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Linear(5, 2), {"dtype": "float32", "shape": ["batch", 5]}),
        (nn.Conv3d(2, 3, 5), {"dtype": "float32", "shape": ["batch", 2, 32, 32, 32]}),
        (nn.GRU(6, 3, batch_first=True), {"dtype": "float32", "shape": ["batch", "sequence", 6]}),
        (nn.BatchNorm1d(4), {"dtype": "float32", "shape": ["batch", 4]}),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, nn.Module) else "",
)  # fmt: skip
def test_a_first_layer_says_what_the_module_takes(layer, expected):
    (found,) = inputs_of(layer).values()
    assert found == expected


def test_an_encoder_of_sequences_is_not_taken_for_one_of_rows():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)

        def forward(self, x):
            batch, sequence, width = x.shape
            return self.layer(x).reshape(batch, sequence, width)

    assert inputs_of(Encoder())["x"]["shape"] == ["batch", "sequence", 8]


def test_a_size_that_is_baked_in_is_no_axis():
    class Baked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x).reshape(2, 2)

    draft = draft_of_module(Baked())
    assert "did not run" in draft.holes["dummy_inputs.x"]


def test_an_annotation_comes_first():
    class Annotated3(nn.Module):
        def forward(self, x: Annotated[Tensor, "batch 3 time"], ids: torch.LongTensor):
            return x[:, :, 0].sum(1), ids

    found = inputs_of(Annotated3())
    assert found["x"] == {"dtype": "float32", "shape": ["batch", 3, "time"]}
    assert found["ids"]["dtype"] == "int64"


def test_what_the_module_gives_as_inputs_comes_first():
    class Given(nn.Module):
        main_input_name = "ids"

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(50, 4)

        @property
        def dummy_inputs(self):
            return {"ids": torch.zeros(2, 7, dtype=torch.int64)}

        def forward(self, ids=None, other=None):
            return self.table(ids)

    assert inputs_of(Given()) == {
        "ids": {"dtype": "int64", "shape": ["batch", "sequence"], "low": 0, "high": 50}
    }


def test_two_inputs_of_two_layers_are_tried_together():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 3), nn.Linear(5, 3)

        def forward(self, a, b):
            return self.a(a) + self.b(b)

    draft = draft_of_module(Two())
    assert [each["shape"] for each in draft.recipe["dummy_inputs"].values()] == [
        ["batch", 4],
        ["batch", 5],
    ]
    assert draft.recipe["outputs"] == ["output"]


def test_inputs_that_must_be_of_one_length_have_one_axis_and_a_mask_that_is_not_read_has_it_too():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.kinds = nn.Embedding(50, 4), nn.Embedding(2, 4)

        def forward(self, input_ids, kind_ids, attention_mask):
            return self.words(input_ids) + self.kinds(kind_ids)

    shapes = [each["shape"] for each in inputs_of(Sum()).values()]
    assert shapes == [["batch", "sequence"]] * 3


def test_what_is_no_module_has_no_draft():
    assert draft_of_module(3) is None


class Denoiser(torch.nn.Module):
    """Takes another model's states, a step of diffusion and a cache."""

    def __init__(self):
        super().__init__()
        self.num_heads, self.embed_dim = 4, 32
        self.table = torch.nn.Embedding(50, 32)
        self.time = torch.nn.Linear(1, 32)
        self.cross = torch.nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, decoder_input_ids, encoder_hidden_states, timestep, past_key, past_value):
        hidden = self.table(decoder_input_ids) + self.time(timestep.float()[:, None])[:, None]
        hidden = hidden + self.cross(hidden, encoder_hidden_states, encoder_hidden_states)[0]
        heads = hidden.unflatten(2, (4, 8)).transpose(1, 2)
        return torch.nn.functional.scaled_dot_product_attention(heads, past_key, past_value)


def test_inputs_with_usual_names_are_known():
    draft = draft_of_module(Denoiser())
    shapes = {name: each["shape"] for name, each in draft.recipe["dummy_inputs"].items()}
    assert shapes == {
        "decoder_input_ids": ["batch", "decoder_sequence"],
        "encoder_hidden_states": ["batch", "encoder_sequence", 32],
        "timestep": ["batch"],
        "past_key": ["batch", 4, "past", 8],
        "past_value": ["batch", 4, "past", 8],
    }
    assert draft.holes == {}


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
