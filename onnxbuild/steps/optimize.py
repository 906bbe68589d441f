"""Fuse and simplify a model with ONNX Runtime, to a portable level only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """What is fused."""

    level: Literal["none", "basic", "extended"] = option(
        "extended",
        help="graph optimizations that are saved; higher ones are specific to a host and never "
        "shipped",
    )
    transformer: bool = option(True, help="try transformer fusions (attention, LayerNorm, GELU)")
    model_type: str = option(
        "auto",
        help="bert, gpt2, t5, vit, ...; auto reads the model's own config",
        pattern=r"^\w+$",
    )
    num_heads: int = option(0, help="attention heads; 0 finds them by itself", minimum=0)
    hidden_size: int = option(0, help="hidden size; 0 finds it by itself", minimum=0)


@dataclass(frozen=True, slots=True)
class OptimizeParams:
    """All that steers an optimization."""

    options: OptimizeOptions


def run(context: StepContext) -> Outcome:
    """Optimize `model`; `config` holds what export saw of the model's own config."""
    raise NotImplementedError


KIND = StepKind(
    name="optimize",
    version=1,
    params=OptimizeParams,
    inputs=("model", "config"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    section="optimize",
    options=OptimizeOptions,
)
