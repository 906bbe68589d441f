"""How far an output may be from PyTorch's, as recipes write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.params import option
from onnxbuild.onnxkit.verdict import Bounds


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may be from PyTorch's; bounds left out are not checked."""

    atol: float | None = option(None, help="|a-b| <= atol + rtol |b|, with b PyTorch's", minimum=0)
    rtol: float | None = option(None, help="see atol", minimum=0)
    cosine_min: float | None = option(
        None, help="least cosine similarity of the flattened outputs", minimum=-1, maximum=1
    )
    sqnr_db_min: float | None = option(
        None,
        help="least signal-to-noise ratio, in dB; a cosine_min of your own takes the default away",
    )


DEFAULT_TOLERANCES: Mapping[str, Tolerance] = {
    "fp32": Tolerance(atol=1e-5, rtol=1e-4),
    "fp16": Tolerance(atol=1e-2, rtol=1e-3),
    "int8": Tolerance(cosine_min=0.98, sqnr_db_min=8.0),
    "int4": Tolerance(cosine_min=0.95, sqnr_db_min=6.0),
}
"""The cosine says nothing of a wrong scale: all values halved have a cosine of 1, and 6 dB. What just
meets the least cosine has 14 and 10 dB, so that the second bound catches scales alone."""


@dataclass(frozen=True, slots=True)
class VariantTolerances(Tolerance):
    """A variant's tolerances, with exceptions by output."""

    outputs: dict[str, Tolerance] = field(
        default_factory=dict, metadata={"help": "tolerances for single outputs, by name"}
    )


def bounds_of(tolerances: VariantTolerances, output: str) -> Bounds:
    """An output's own tolerance in place of the variant's, not on top of it."""
    own: Tolerance = tolerances.outputs.get(output, tolerances)
    return Bounds(own.atol, own.rtol, own.cosine_min, own.sqnr_db_min)


def check_tolerance_names(
    tolerances: VariantTolerances, outputs: Sequence[str], where: str
) -> None:
    """See that tolerances of single outputs name outputs that there are.

    Raises:
        StepError: One does not.
    """
    for name in tolerances.outputs:
        if name not in outputs:
            raise StepError(
                f"tolerances are given for output '{name}'; the model has {', '.join(outputs)}",
                where=where,
                fix=did_you_mean(name, outputs) or f"take '{name}' out of `outputs`",
            )
