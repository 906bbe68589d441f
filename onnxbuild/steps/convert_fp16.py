"""Convert a model's weights and arithmetic to 16-bit floats."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class Fp16Options:
    """What becomes fp16."""

    keep_io_types: bool = option(True, help="keep float32 inputs and outputs")
    op_block_list: tuple[str, ...] = option((), help="operator types that stay in fp32")
    node_block_list: tuple[str, ...] = option((), help="nodes that stay in fp32, by name")


@dataclass(frozen=True, slots=True)
class Fp16Params:
    """All that steers a conversion."""

    options: Fp16Options


def run(context: StepContext) -> Outcome:
    """Convert `model`."""
    raise NotImplementedError


KIND = StepKind(
    name="convert-fp16",
    version=1,
    params=Fp16Params,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    options=Fp16Options,
)
