"""The goal that a variant must keep, and by how much one misses it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option

_ROUNDING = 1e-9
"""0.99 - 0.98 is more than 0.01 in binary; a drop of exactly the bound meets it, as in `evaluate`."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Share of the fp32 model's quality that a variant must keep, over the `fidelity` or the `evaluate` data."""

    cosine_mean: float | None = option(
        None, help="least mean cosine similarity of the samples", minimum=-1, maximum=1
    )
    cosine_min: float | None = option(
        None, help="least cosine similarity of any sample", minimum=-1, maximum=1
    )
    sqnr_db: float | None = option(None, help="least signal-to-noise ratio over all samples, dB")
    max_drop: float | None = option(
        None, help="how far the `evaluate` score may be below the reference's", minimum=0
    )


def asked(goal: Goal) -> dict[str, float]:
    """The bounds that are named."""
    values = {field.name: getattr(goal, field.name) for field in fields(goal)}
    return {name: value for name, value in values.items() if value is not None}


def refuse_cosines(goal: Goal, where: str) -> None:
    """Refuse a goal for the cosine of samples that are one number each: any trial would meet it.

    Raises:
        StepError: The goal names a cosine.
    """
    cosines = [name for name in asked(goal) if name.startswith("cosine")]
    if cosines:
        raise StepError(
            f"the goal names {' and '.join(cosines)}, and the model gives one number a sample, whose cosine is 1 "
            "or -1 however large the error is",
            where=where,
            fix="write `goal: {sqnr_db: 30}`, or `goal: {max_drop: ...}` with `evaluate`",
        )


def missed(goal: Goal, figures: Mapping[str, Any], margin: float = 0.0) -> dict[str, float]:
    """Bound -> by how much it is missed, as a share of what may be lost; those met are left out.

    Args:
        goal: What is asked.
        figures: cosine_mean, cosine_min, sqnr_db, drop; None or absent where nothing is lost.
        margin: Share of what may be lost that must be left over.
    """
    found = {}
    for name, bound in asked(goal).items():
        value = figures.get(_figure(name))
        if value is None:
            continue
        allowed = {"cosine_mean": 1 - bound, "cosine_min": 1 - bound}.get(name, abs(bound))
        if name == "max_drop":
            lacking = value - bound * (1 - margin) - _ROUNDING
        elif name == "sqnr_db":  # what may be lost there is the noise
            lacking = bound - 10 * math.log10(1 - margin) - value
        else:
            lacking = bound + margin * allowed - value
        if lacking > 0:
            found[name] = lacking / max(allowed, 1e-9)
    return found


def reached(goal: Goal, figures: Mapping[str, Any]) -> str:
    """Return what was got of what is asked: `cosine_mean 0.9961, drop 0.01`."""
    parts = []
    for name in map(_figure, asked(goal)):
        value = figures.get(name)
        parts.append(f"{name} {value:.7g}" if value is not None else f"{name} without loss")
    return ", ".join(parts)


def written(goal: Goal) -> str:
    """Return what is asked: `cosine_mean 0.995, max_drop 0.01`."""
    return ", ".join(f"{name} {bound:.10g}" for name, bound in asked(goal).items())


def _figure(bound: str) -> str:
    return "drop" if bound == "max_drop" else bound
