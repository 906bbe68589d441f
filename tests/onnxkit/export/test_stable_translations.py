"""Operators at values where their plain formulas overflow or cancel, in both exporters' graphs."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.exporters import ExportRequest, export_graph

SIZES = np.array(
    [0, 1e-30, 1e-8, 1e-6, 1e-3, 0.1, 0.3, 0.5, 1, 1.5, 3, 5, 9, 30, 88, 100, 1000, 1e4]
)
VALUES = np.concatenate([-SIZES[:0:-1], SIZES])
WINDOW = torch.hann_window(8)

BOTH = {
    "log1p": lambda a, b: torch.log1p(a),
    "expm1": lambda a, b: torch.expm1(a),
    "logaddexp": torch.logaddexp,
    "log_sigmoid": lambda a, b: functional.logsigmoid(a),
    "softplus": lambda a, b: functional.softplus(a),
    "entropy": lambda a, b: functional.binary_cross_entropy_with_logits(
        a, torch.sigmoid(b), pos_weight=b * 0 + 3, reduction="none"
    ),
    "erfc": lambda a, b: torch.erfc(a),
    "hypot": torch.hypot,
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "cosine": lambda a, b: functional.cosine_similarity(
        torch.stack([a, b], 1).abs() * 1e-6, torch.stack([b, a], 1).abs(), dim=1
    ),
    "cosine_of_one_row": lambda a, b: functional.cosine_similarity(
        torch.stack([a, b], 1).abs() * 1e-6, b.new_tensor([3e-6, 4e-6]), dim=1
    ),
    "remainder": torch.remainder,
    "floor_divide": torch.floor_divide,
    "whole_floor_divide": lambda a, b: a.clamp(-1e6, 1e6).long() // 7,
}
DYNAMO = {
    "logaddexp2": lambda a, b: torch.logaddexp2(a, b - 0.25),
    "logcumsumexp": lambda a, b: torch.logcumsumexp(torch.stack([a, b, a], 1), 1),
    "erfcx": lambda a, b: torch.special.erfcx(a.clamp(min=-5)),
    "xlog1py": lambda a, b: torch.special.xlog1py(a, b.abs()),
    "whole_division": lambda a, b: torch.div(
        a.clamp(-1e4, 1e4).long() * 2**30 + 1, 3, rounding_mode="trunc"
    ),
}
"""Operators that torchscript lacks, or leaves as they are."""


class Operators(torch.nn.Module):
    def __init__(self, operators):
        super().__init__()
        self.operators = operators

    def forward(self, a, b):
        return {name: call(a, b) for name, call in self.operators.items()}


class Attention(torch.nn.Module):
    """By a mask of bools, and by one of floats."""

    def forward(self, x, seen):
        added = torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)
        attend = functional.scaled_dot_product_attention
        return attend(x, x, x, seen), attend(x, x, x, added)


class Means(torch.nn.Module):
    def forward(self, rows, index):
        base, spread = rows.new_ones(6, 4), index[:, None].expand(-1, 4)
        return tuple(
            base.scatter_reduce(0, spread, rows, "mean", include_self=each)
            for each in (True, False)
        )


class Sound(torch.nn.Module):
    def forward(self, sound):
        spectrum = torch.stft(sound, 8, 2, window=WINDOW, return_complex=True)
        return torch.istft(spectrum, 8, 2, window=WINDOW)


class Rows(torch.nn.Module):
    def forward(self, rows, index):
        return rows.index_put((index,), rows * 2), rows[index]


def compared(module, feeds, tmp_path, exporter):
    """Outputs of PyTorch and of the graph, one pair each."""
    inputs = tuple(DummyInput(n, str(v.dtype), ("n", *v.shape[1:])) for n, v in feeds.items())
    with torch.no_grad():
        found = module(**{name: torch.from_numpy(value) for name, value in feeds.items()})
    named = found if isinstance(found, dict) else {}
    expected = list(named.values()) or list(found if isinstance(found, tuple) else (found,))
    names = tuple(named) or tuple(f"y{n}" for n in range(len(expected)))
    request = ExportRequest(
        module=module.eval(),
        inputs=inputs,
        axes=(Axis("n", 2, 4000, len(next(iter(feeds.values())))),),
        feeds=feeds,
        output_names=names,
        opset=18,
        constant_folding=True,
        translations={},
        scratch=tmp_path,
        where="m:export",
    )
    model, _ = export_graph(exporter, request)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return dict(
        zip(
            names,
            zip([t.numpy() for t in expected], session.run(names, feeds), strict=True),
            strict=True,
        )
    )


def agree(pairs, atol=1e-37):
    for name, (expected, actual) in pairs.items():
        finite = np.isfinite(expected)
        assert finite.any(), name
        np.testing.assert_allclose(
            actual[finite], expected[finite], rtol=1e-4, atol=atol, err_msg=name
        )


def grid():
    a, b = np.meshgrid(VALUES, VALUES)
    return {"a": a.ravel().astype("float32"), "b": b.ravel().astype("float32")}


def test_torchscript_translates_operators_without_overflow_or_cancellation(tmp_path):
    agree(compared(Operators(BOTH), grid(), tmp_path, "torchscript"))


def test_torchscript_gives_zeros_where_attention_sees_nothing(tmp_path):
    agree(compared(Attention(), _masked(), tmp_path, "torchscript"), 1e-6)


@pytest.mark.slow
def test_dynamo_translates_operators_without_overflow_or_cancellation(tmp_path):
    agree(compared(Operators(BOTH | DYNAMO), grid(), tmp_path, "dynamo"))


@pytest.mark.slow
def test_dynamo_gives_zeros_where_attention_sees_nothing(tmp_path):
    agree(compared(Attention(), _masked(), tmp_path, "dynamo"), 1e-6)


@pytest.mark.slow
def test_the_mean_of_scattered_rows_is_translated(tmp_path):
    feeds = {"rows": _normal(5, 4), "index": np.array([0, 2, 2, 0, 3])}
    agree(compared(Means(), feeds, tmp_path, "dynamo"), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "feeds"),
    [
        (
            Rows(),
            {"rows": np.ones((5, 4), "float32"), "index": np.array([4, 0, 1, 3, 2], "int32")},
        ),
        (Sound(), {"sound": np.random.default_rng(0).normal(size=(2, 40)).astype("float32")}),
    ],
)
def test_indices_of_32_bits_are_cast(tmp_path, module, feeds):
    agree(compared(module, feeds, tmp_path, "dynamo"), 1e-5)


def _normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def _masked():
    seen = np.random.default_rng(1).random((3, 1, 4, 4)) > 0.4
    seen[1, 0, 2] = False
    return {"x": _normal(3, 2, 4, 8), "seen": seen}
