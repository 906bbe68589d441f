"""PyTorch's settings as the user has them, against those of an export."""

import numpy as np
import pytest
import torch

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.export.torch_module import make_torch_deterministic, run_module
from onnxbuild.onnxkit.export.user_settings import padded_feeds, refuse_other_settings

INPUTS = (DummyInput("x", "float32", (2, 6, 8)), DummyInput("padding", "bool", (2, 6)))
PADDING = np.array([[False] * 6, [False, False, True, True, True, True]])
FEEDS = {"x": np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")}


class Encoder(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, **options)

    def forward(self, x, padding):
        return self.encoder(x, src_key_padding_mask=padding).mean(1)


class Branches(torch.nn.Module):
    """Computes something else without gradients, with several threads, or by deterministic kernels."""

    def __init__(self, condition):
        super().__init__()
        self.condition = condition

    def forward(self, x):
        return x + 1 if self.condition() else x


@pytest.fixture
def settings():
    before = make_torch_deterministic()
    torch.set_num_threads(1)
    yield type(before)(threads=2, determinism=0)
    torch.set_num_threads(before.threads)
    torch.set_deterministic_debug_mode(before.determinism)


def compare(module, feeds, settings, inputs=INPUTS):
    module = module.eval()
    outputs = run_module(module, feeds, inputs=inputs).outputs
    refuse_other_settings(
        module, feeds, outputs, settings, "m:reference", inputs=inputs, shown="min"
    )


def test_zeros_at_padded_positions_are_refused_with_the_switch_and_what_to_write(settings):
    feeds = FEEDS | {"padding": PADDING}
    with pytest.raises(StepError) as caught:
        compare(Encoder(), feeds, settings)
    assert "`torch.backends.mha.set_fastpath_enabled(False)` turns it off" in caught.value.what
    assert "at point 'min', output 'output_0' is " in caught.value.what
    assert "write `enable_nested_tensor=False` in nn.TransformerEncoder(...)" in caught.value.fix
    assert torch.backends.mha.get_fastpath_enabled()


def test_both_things_to_write_help(settings):
    feeds = FEEDS | {"padding": PADDING}
    compare(Encoder(enable_nested_tensor=False), feeds, settings)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        compare(Encoder(), feeds, settings)
        assert not torch.backends.mha.get_fastpath_enabled()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_an_encoder_without_padding_passes(settings):
    compare(Encoder(), FEEDS | {"padding": np.zeros((2, 6), bool)}, settings)


def test_what_is_nan_for_users_is_not_compared(settings):
    class Attends(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x, padding):
            return self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]

    compare(Attends(), FEEDS | {"padding": np.array([[False] * 6, [True] * 6])}, settings)


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        (lambda: torch.get_num_threads() > 1, "torch.set_num_threads(1)"),
        (lambda: torch.get_deterministic_debug_mode() > 0, "torch.set_deterministic_debug_mode"),
        (torch.is_inference_mode_enabled, "torch.inference_mode()"),
    ],
)
def test_any_other_setting_is_named(settings, condition, named):
    x = {"x": FEEDS["x"]}
    with pytest.raises(StepError) as caught:
        compare(Branches(condition), x, settings, INPUTS[:1])
    assert caught.value.what.endswith(f"The reason is `{named}`")


def test_masks_are_padded_at_the_end_in_both_senses():
    inputs = (
        *INPUTS,
        DummyInput("kept", "bool", (2, 6), fill=True),
        DummyInput("n", "int64", (2,)),
    )
    feeds = FEEDS | {"padding": PADDING, "kept": ~PADDING, "n": np.array([1, 0])}
    ones, zeros = padded_feeds(inputs, feeds)
    assert ones["padding"].astype(int).tolist() == [[0] * 6, [0, 0, 0, 1, 1, 1]]
    assert (zeros["padding"] == ~ones["padding"]).all()
    assert all(ones[name] is feeds[name] for name in ("x", "kept", "n"))
