"""Find outputs whose error is as large as their values, where an absolute tolerance alone does not show it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.accuracy.point_reports import JudgedPoint, comparisons
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of

NOISY = "noise"
"""The kind of breach of such an output, for fixes."""

_GREATEST_SHARE = 10 ** (-8.0 / 20)
"""Greatest error of an output, as a share of its norm: 8 dB, the least that 8 bits are judged by."""


def noisy_findings(
    judged: Sequence[JudgedPoint],
    tolerances: VariantTolerances,
    subject: str,
    fix: Callable[[str, str], str],
) -> tuple[Finding, ...]:
    """One for each float output whose error over all points is more than _GREATEST_SHARE of its values.

    An `atol` of 0.01 passes zeros in place of the probabilities of 1,000 classes, which are near 0.001.
    Norms are of all points together: the few elements of one point may all be near zero by chance.
    Outputs that have a `cosine_min` or an `sqnr_db_min` are judged by that, and those that the recipe gives
    bounds of their own by these alone. One that breaches a bound has its finding; zeros are left to `atol`.

    Args:
        judged: Judgements of all points.
        tolerances: In force.
        subject: Name of what is judged, such as `variant 'fp16'`.
        fix: (output, kind of breach) -> the fix to suggest.
    """
    breached = {name for _, _, found in judged for name, each in found.items() if each.breaches}
    norms: dict[str, tuple[float, float, int]] = {}
    for _, name, found in comparisons(judged):
        magnitude, error, elements = norms.get(name, (0.0, 0.0, 0))
        norms[name] = (
            math.hypot(magnitude, found.magnitude),
            math.hypot(error, found.error),
            elements + found.elements,
        )
    return tuple(
        Finding(
            _what(*norm, len(judged), bounds_of(tolerances, name).atol or 0.0),
            f"{subject}, output '{name}'",
            fix(name, NOISY),
        )
        for name, norm in norms.items()
        if name not in breached
        and _has_absolute_bound(name, tolerances)
        and 0.0 < norm[0] * _GREATEST_SHARE < norm[1]
    )


def _has_absolute_bound(name: str, tolerances: VariantTolerances) -> bool:
    """Return whether an output is judged by the variant's `atol` and by no measure of direction or noise."""
    bounds = bounds_of(tolerances, name)
    measured = bounds.cosine_min is not None or bounds.sqnr_db_min is not None
    return name not in tolerances.outputs and bool(bounds.atol) and not measured


def _what(magnitude: float, error: float, elements: int, points: int, atol: float) -> str:
    typical = magnitude / math.sqrt(elements)
    where = f" over all {points} points" if points > 1 else ""
    return (
        f"its error{where} is {error / magnitude:.0%} of its values, allowed {_GREATEST_SHARE:.0%}: they are "
        f"near {typical:.2g}, so small that atol {atol:g} does not show it"
    )
