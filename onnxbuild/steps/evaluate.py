"""Score PyTorch or a variant with the user's own metric on the user's own data."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.params import option
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """What a variant's score must reach."""

    min: float | None = option(None, help="least score of every variant")
    max_drop: float | None = option(
        None, help="how far a score may lie below PyTorch's, in the metric's unit", minimum=0
    )


@dataclass(frozen=True, slots=True)
class EvaluateParams:
    """All that steers an evaluation.

    Attributes:
        data: A callable that yields (feeds, labels).
        metric: A callable: (outputs, labels) -> float, greater is better; outputs is a list of
            mappings of output name -> array, labels the list of labels, one each a batch.
        model: The PyTorch model to score; None scores the `model` artifact.
    """

    data: Entrypoint
    metric: Entrypoint
    model: Entrypoint | None
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    variant: str
    provider: str
    provider_options: dict[str, str]
    options: EvaluateOptions


def run(context: StepContext) -> Outcome:
    """Write report.json; a score under its gate is a finding."""
    raise NotImplementedError


def _entrypoints(params: EvaluateParams) -> tuple[Entrypoint, ...]:
    model = () if params.model is None else (params.model,)
    return (*model, params.data, params.metric)


KIND = StepKind(
    name="evaluate",
    version=1,
    params=EvaluateParams,
    inputs=("model?", "baseline?"),
    outputs={"report": "report"},
    toolchain=("torch", "onnxruntime", "numpy"),
    run=run,
    section="evaluate",
    options=EvaluateOptions,
    host_bound=True,
    user_code=True,
    entrypoints=_entrypoints,
)
