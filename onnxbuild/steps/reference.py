"""Run the PyTorch module at several points and keep inputs and outputs to judge variants by."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """What the variants are compared on."""

    seed: int = option(0, help="seeds the dummy inputs", minimum=0)
    points: tuple[dict[str, int], ...] = option(
        (), help="more points, each a mapping of axis to size; axes left out are at their example"
    )
    max_samples: int = option(16, help="how many of the real samples are used", minimum=1)


@dataclass(frozen=True, slots=True)
class ReferenceParams:
    """All that steers a reference run."""

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


def run(context: StepContext) -> Outcome:
    """Write points.json and one .npz a point."""
    raise NotImplementedError


def _entrypoints(params: ReferenceParams) -> tuple[Entrypoint, ...]:
    return (params.model,) if params.samples is None else (params.model, params.samples)


KIND = StepKind(
    name="reference",
    version=1,
    params=ReferenceParams,
    inputs=(),
    outputs={"reference": "reference"},
    toolchain=("torch", "numpy"),
    run=run,
    section="reference",
    options=ReferenceOptions,
    host_bound=True,
    user_code=True,
    entrypoints=_entrypoints,
)
