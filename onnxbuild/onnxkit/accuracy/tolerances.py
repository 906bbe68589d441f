"""Bounds on the difference of an output from the reference's, as recipes write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.params import option
from onnxbuild.onnxkit.accuracy.comparison import is_exact, is_text
from onnxbuild.onnxkit.accuracy.verdict import Bounds

if TYPE_CHECKING:
    import numpy as np

_FLOAT_BOUNDS = ("atol", "rtol", "cosine_min", "sqnr_db_min")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Bounds on the distance of an output from the reference's; those left out are not checked."""

    atol: float | None = option(
        None, help="|a-b| <= atol + rtol |b|, with b the reference's", minimum=0
    )
    rtol: float | None = option(None, help="see atol", minimum=0)
    cosine_min: float | None = option(
        None, help="least cosine similarity of the flattened outputs", minimum=-1, maximum=1
    )
    sqnr_db_min: float | None = option(
        None,
        help="least signal-to-noise ratio, in dB; the default does not apply if you write cosine_min",
    )
    equal_min: float | None = option(
        None,
        help="least share of equal elements of an integer, bool or string output, over all points "
        "together; the other bounds leave such outputs alone",
        minimum=0,
        maximum=1,
    )


DEFAULT_TOLERANCES: Mapping[str, Tolerance] = {
    "fp32": Tolerance(atol=1e-5, rtol=1e-4, equal_min=1.0),
    "fp16": Tolerance(atol=1e-2, rtol=1e-3, equal_min=1.0),
    "int8": Tolerance(cosine_min=0.98, sqnr_db_min=8.0, equal_min=0.95),
    "int4": Tolerance(cosine_min=0.95, sqnr_db_min=6.0, equal_min=0.9),
}
"""The cosine says nothing of a wrong scale: all values halved have a cosine of 1, and 6 dB. What just
meets the least cosine has 14 and 10 dB, so that the second bound catches scales alone.

No cosine holds for ids: argmax ids + 20,000 with 13 % of them wrong have one of 0.99997. Rounding alone may
turn an argmax where two logits nearly tie: classes of the digits of recipes/digits.yaml are the same for 449
of 450 images in INT8 and INT4, and for 97.3 to 99.4 % of 512 pictures of noise, where ties are common. Few
bits are allowed twice to four times that."""


@dataclass(frozen=True, slots=True)
class VariantTolerances(Tolerance):
    """A variant's tolerances, with exceptions by output."""

    outputs: dict[str, Tolerance] = field(
        default_factory=dict,
        metadata={
            "help": "tolerances for single outputs, by name; each in place of the variant's",
            "minProperties": 1,  # with no bound at all, anything would pass
        },
    )


def bounds_of(tolerances: VariantTolerances, output: str) -> Bounds:
    """An output's own tolerance in place of the variant's, not on top of it.

    An atol of its own says how far apart two integers may be to count as equal; a variant's atol is
    for its float outputs.
    """
    own = tolerances.outputs.get(output)
    if own is None:
        own, equal_min, apart = tolerances, tolerances.equal_min, 0.0
    else:
        equal_min, apart = 1.0 if own.equal_min is None else own.equal_min, own.atol or 0.0
    return Bounds(own.atol, own.rtol, own.cosine_min, own.sqnr_db_min, equal_min, apart)


def check_tolerances(
    tolerances: VariantTolerances, outputs: Mapping[str, np.ndarray], where: str
) -> None:
    """See that tolerances of single outputs name outputs that there are, and bounds that they have.

    Raises:
        StepError: One does not.
    """
    for name, own in tolerances.outputs.items():
        if name not in outputs:
            raise StepError(
                f"tolerances are given for output '{name}'; the model has {', '.join(outputs)}",
                where=where,
                fix=did_you_mean(name, outputs) or f"take '{name}' out of `outputs`",
            )
        _check_bounds(name, own, outputs[name], where)


def _check_bounds(name: str, own: Tolerance, output: np.ndarray, where: str) -> None:
    kind = "string" if is_text(output) else str(output.dtype)
    given = [key for key in _FLOAT_BOUNDS if getattr(own, key) is not None]
    if is_exact(output):
        senseless = [key for key in given if key != "atol" or output.dtype.kind not in "iu"]
        if senseless:
            raise StepError(
                f"output '{name}' is {kind}, which is judged by the share of equal elements; its "
                f"tolerances name {' and '.join(senseless)}",
                where=where,
                fix=f"write `outputs: {{{name}: {{equal_min: 1.0}}}}`",
            )
    elif own.equal_min is not None:
        raise StepError(
            f"output '{name}' is {kind}; equal_min is for integers, bools and strings",
            where=where,
            fix=f"write `outputs: {{{name}: {{atol: 1.0e-5, rtol: 1.0e-4}}}}`, or a `cosine_min`",
        )
