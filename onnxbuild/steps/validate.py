"""Compare a variant's outputs with PyTorch's at every reference point; breaches fail the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Precision
from onnxbuild.core.step import Outcome, StepContext, StepKind


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may be from PyTorch's; bounds left out are not checked."""

    atol: float | None = option(None, help="|a-b| <= atol + rtol |b|, with b PyTorch's", minimum=0)
    rtol: float | None = option(None, help="see atol", minimum=0)
    cosine_min: float | None = option(
        None, help="least cosine similarity of the flattened outputs", minimum=-1, maximum=1
    )
    sqnr_db_min: float | None = option(None, help="least signal-to-noise ratio, in dB")


DEFAULT_TOLERANCES: Mapping[str, Tolerance] = {
    "fp32": Tolerance(atol=1e-5, rtol=1e-4),
    "fp16": Tolerance(atol=1e-2, rtol=1e-3),
    "int8": Tolerance(cosine_min=0.98),
}


@dataclass(frozen=True, slots=True)
class VariantTolerances(Tolerance):
    """A variant's tolerances, with exceptions by output."""

    outputs: dict[str, Tolerance] = field(
        default_factory=dict, metadata={"help": "tolerances for single outputs, by name"}
    )


@dataclass(frozen=True, slots=True)
class ValidateOptions:
    """Tolerances by precision; a variant's own `validate` comes first."""

    fp32: VariantTolerances | None = option(None, help="default: atol 1e-5, rtol 1e-4")
    fp16: VariantTolerances | None = option(None, help="default: atol 1e-2, rtol 1e-3")
    int8: VariantTolerances | None = option(None, help="default: cosine_min 0.98")


@dataclass(frozen=True, slots=True)
class ValidateParams:
    """All that steers a comparison.

    Attributes:
        tolerances: In force, all defaults filled in.
        provider: Short name of the execution provider that must run the model.
        provider_options: Its options.
    """

    variant: str
    precision: Precision
    tolerances: VariantTolerances
    provider: str
    provider_options: dict[str, str]


def run(context: StepContext) -> Outcome:
    """Write report.json; breaches are findings."""
    raise NotImplementedError


KIND = StepKind(
    name="validate",
    version=1,
    params=ValidateParams,
    inputs=("model", "reference"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    section="validate",
    options=ValidateOptions,
    host_bound=True,
)
