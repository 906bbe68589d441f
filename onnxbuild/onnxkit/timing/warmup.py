"""Count the rounds of a measurement that belong to its warm-up."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

from onnxbuild.onnxkit.timing.rounds import Turns

_GROUP = 5
"""Rounds are averaged by fives before the cut is looked for, against single bad moments."""


def warmup_rounds(measured: Mapping[str, Turns]) -> int:
    """Rounds at the beginning to leave out: caches fill, the clock rises or falls until it settles.

    The cut is where the mean of what is left is known best, in the first half (MSER-5: White,
    Cobb and Spratt 2000, "A comparison of five steady-state truncation heuristics for
    simulation"). All runners count alike, by the logarithm of each turn's median.

    Args:
        measured: Runner -> its turns, as many each.
    """
    logs = [[math.log(statistics.median(turn)) for turn in turns] for turns in measured.values()]
    rounds = [statistics.fmean(each) for each in zip(*logs, strict=True)]
    groups = [
        statistics.fmean(rounds[n : n + _GROUP])
        for n in range(0, len(rounds) - _GROUP + 1, _GROUP)
    ]
    if len(groups) < 4:  # noqa: PLR2004 - halves of one group tell nothing
        return 0
    return _GROUP * min(range(len(groups) // 2 + 1), key=lambda cut: _doubt(groups[cut:]))


def _doubt(left: list[float]) -> float:
    """The squared standard error of the mean."""
    return statistics.pvariance(left) / len(left)
