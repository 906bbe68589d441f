"""Prepare a model for static quantization: infer shapes, fold and fuse what would hide scales."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class PreprocessParams:
    """Nothing to steer."""


def run(context: StepContext) -> Outcome:
    """Preprocess `model`."""
    raise NotImplementedError


KIND = StepKind(
    name="preprocess",
    version=1,
    params=PreprocessParams,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy", "sympy"),
    run=run,
)
