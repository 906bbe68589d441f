"""Quantize weights and activations to 8 bits with calibrated ranges, as QDQ pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """What is quantized, and how."""

    weight_type: Literal["int8", "uint8"] = option("int8", help="type of the quantized weights")
    activation_type: Literal["uint8", "int8", "auto"] = option(
        "auto", help="type of the quantized activations; auto: uint8 on x86, int8 on ARM"
    )
    per_channel: bool = option(True, help="one scale a channel instead of one a tensor")
    reduce_range: bool | Literal["auto"] = option(
        "auto",
        help="7-bit weights; auto: only where the CPU has no VNNI or AMX, whose sums saturate",
    )
    op_types: tuple[str, ...] = option((), help="operator types to quantize; empty: all supported")
    nodes_to_exclude: tuple[str, ...] = option((), help="nodes that stay in fp32, by name")


@dataclass(frozen=True, slots=True)
class StaticParams:
    """All that steers a quantization; `auto` is resolved before it gets here."""

    options: StaticOptions


def run(context: StepContext) -> Outcome:
    """Quantize `model` with the ranges of `calibration`."""
    raise NotImplementedError


KIND = StepKind(
    name="quantize-static",
    version=1,
    params=StaticParams,
    inputs=("model", "calibration"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    options=StaticOptions,
)
