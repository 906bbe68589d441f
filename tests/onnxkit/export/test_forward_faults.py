"""A forward that fails says what its inputs must be declared as, and that declaration works."""

from pathlib import Path

import pytest
import torch
from torch import nn

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.export_check import run_probes
from onnxbuild.onnxkit.export.torch_module import make_torch_deterministic

AXES = (Axis("batch", 1, 8, 2), Axis("sequence", 1, 32, 5))
ROWS = ("batch", "sequence")


class Embeds(nn.Module):
    def __init__(self, rows=50):
        super().__init__()
        self.words = nn.Embedding(rows, 4)
        self.types = nn.Embedding(2, 4)
        self.linear = nn.Linear(4, 4)

    def forward(self, ids, types=None):
        hidden = self.words(ids)
        if types is not None:
            hidden = hidden + self.types(types)
        return self.linear(hidden)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


class Needs(nn.Module):
    """A convolution of 7 without padding, over a position table of `longest` rows."""

    def __init__(self, longest=None):
        super().__init__()
        self.convolution = nn.Conv1d(1, 1, 7)
        self.longest = longest

    def forward(self, x):
        if self.longest:
            return x + torch.ones(self.longest)
        return self.convolution(x[:, None])[:, 0]


def probed(module, *inputs, axes=AXES):
    make_torch_deterministic()
    return run_probes(module.eval(), inputs, axes, (), "m:export")


def refused(module, *inputs, axes=AXES):
    with pytest.raises(StepError) as caught:
        probed(module, *inputs, axes=axes)
    return caught.value


def test_float_ids_are_reported_to_be_int64_and_run_as_such():
    error = refused(Embeds(), DummyInput("ids", "float32", ROWS))
    assert error.fix == "write `dtype: int64` for 'ids' in `dummy_inputs`"
    assert probed(Embeds(), DummyInput("ids", "int64", ROWS)).names == ("output_0",)


def test_all_inputs_of_one_wrong_dtype_are_named_together():
    inputs = (DummyInput("ids", "float32", ROWS), DummyInput("types", "float32", ROWS))
    assert refused(Embeds(), *inputs).fix == (
        "write `dtype: int64` for 'ids' and 'types' in `dummy_inputs`"
    )


@pytest.mark.parametrize("dtype", ["int64", "float64", "float16", "bool"])
def test_features_of_another_dtype_are_reported_to_be_float32(dtype):
    inputs = DummyInput("x", dtype, ("batch", 4))
    assert refused(Linear(), inputs).fix == "write `dtype: float32` for 'x' in `dummy_inputs`"


def test_ids_beyond_the_table_are_reported_its_rows():
    error = refused(Embeds(), DummyInput("ids", "int64", ROWS, low=0, high=5000))
    assert error.fix == "write `high: 50` for 'ids' in `dummy_inputs`"
    probed(Embeds(), DummyInput("ids", "int64", ROWS, low=0, high=50))


class Pooled(nn.Module):
    """Refuses rows without a token, and tokens that are neither padding nor words."""

    def forward(self, x, mask):
        if (mask.sum(1) == 0).any() or ((mask != 0) & (mask != 1)).any():
            raise ValueError("each row needs a token")
        return (x * mask[..., None]).sum(1)


def test_values_that_forward_does_not_take_are_no_matter_of_shapes():
    x = DummyInput("x", "float32", (*ROWS, 4))
    error = refused(Pooled(), x, DummyInput("mask", "int64", ROWS, low=0, high=9))
    assert error.fix.startswith("forward runs where 'mask' is 1 everywhere: write `fill: 1` or")
    probed(Pooled(), x, DummyInput("mask", "int64", ROWS, fill=1))
    probed(Pooled(), x, DummyInput("mask", "int64", ROWS, mask="right"))


def test_a_shape_that_forward_does_not_take_is_shown_with_its_dtype():
    error = refused(Linear(), DummyInput("x", "float32", ("batch", 7)))
    assert "cannot be multiplied" in error.what
    assert error.fix == (
        "forward was given x float32 [2, 7]: if it takes another shape, write that in `dummy_inputs`"
    )
    error = refused(Linear(), DummyInput("x", "bfloat16", ("batch", 7)))
    assert error.fix.startswith("forward was given x bfloat16 [2, 7]: ")


def test_a_least_size_is_found_and_works():
    axes = (Axis("batch", 1, 8, 2), Axis("sequence", 1, 32, 16))
    error = refused(Needs(), DummyInput("x", "float32", ROWS), axes=axes)
    assert error.what.startswith("axis 'sequence' takes no size below 7: forward fails at ")
    assert error.fix == "write `sequence: {min: 7, max: 32, example: 16}` in `dynamic_axes`"
    probed(Needs(), DummyInput("x", "float32", ROWS), axes=(AXES[0], Axis("sequence", 7, 32, 16)))


def test_a_size_that_is_the_examples_alone_is_to_be_a_number():
    axes = (Axis("batch", 2, 8, 2), Axis("sequence", 2, 32, 2))
    error = refused(Needs(longest=2), DummyInput("x", "float32", ROWS), axes=axes)
    assert error.what.startswith("axis 'sequence' takes its example alone: forward fails at ")
    assert "write `2` in the place of `sequence` in `dummy_inputs`" in error.fix
    probed(Needs(longest=2), DummyInput("x", "float32", ("batch", 2)), axes=axes[:1])


def test_a_number_baked_in_for_the_batch_is_no_multiple_and_has_its_line():
    class Views(nn.Module):
        def forward(self, x):
            return x.view(2, 5, -1)

    inputs = DummyInput("x", "float32", ("batch", 5, "width"))
    error = refused(Views(), inputs, axes=(AXES[0], Axis("width", 1, 9, 7)))
    assert error.what.startswith("axis 'batch' is baked into the model: forward runs at batch=2")
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    number = next(n for n, each in enumerate(lines, 1) if "x.view(2, 5" in each)
    assert error.where.endswith(f"test_forward_faults.py:{number}")


@pytest.mark.parametrize("padding", [None, 3])
def test_a_decoder_that_can_not_pad_needs_the_id_of_its_padding(padding):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=20,
        n_embd=8,
        n_layer=1,
        n_head=2,
        n_positions=40,
        pad_token_id=padding,
        use_cache=False,
    )
    module = transformers.GPT2ForSequenceClassification(config)
    ids = DummyInput("input_ids", "int64", ROWS, low=0, high=20)
    if padding is not None:
        assert probed(module, ids).names == ("logits",)
        return
    with pytest.raises(StepError, match="no padding token is defined") as caught:
        probed(module, ids)
    assert caught.value.fix.startswith("set `pad_token_id` in the model's config")
