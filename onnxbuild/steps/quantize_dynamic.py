"""Quantize weights to 8 bits; activations are quantized as the model runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class DynamicOptions:
    """What is quantized, and how."""

    weight_type: Literal["int8", "uint8"] = option("int8", help="type of the quantized weights")
    per_channel: bool = option(True, help="one scale a channel instead of one a tensor")
    reduce_range: bool | Literal["auto"] = option(
        "auto",
        help="7-bit weights; auto: only where the CPU has no VNNI or AMX, whose sums saturate",
    )
    op_types: tuple[str, ...] = option((), help="operator types to quantize; empty: all supported")
    nodes_to_exclude: tuple[str, ...] = option((), help="nodes that stay in fp32, by name")


@dataclass(frozen=True, slots=True)
class DynamicParams:
    """All that steers a quantization; `auto` is resolved before it gets here."""

    options: DynamicOptions


def run(context: StepContext) -> Outcome:
    """Quantize `model`."""
    raise NotImplementedError


KIND = StepKind(
    name="quantize-dynamic",
    version=1,
    params=DynamicParams,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    options=DynamicOptions,
)
