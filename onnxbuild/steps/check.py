"""Check a model: well-formed, shapes inferable, exactly the declared axes dynamic; and sum it up."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class CheckParams:
    """What the graph must look like.

    Attributes:
        opset: The exact default-domain opset, or None where a later step may have raised it.
    """

    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    opset: int | None


def run(context: StepContext) -> Outcome:
    """Write report.json; breaches are findings."""
    raise NotImplementedError


KIND = StepKind(
    name="check",
    version=1,
    params=CheckParams,
    inputs=("model",),
    outputs={"report": "report"},
    toolchain=("onnx", "numpy"),
    run=run,
)
