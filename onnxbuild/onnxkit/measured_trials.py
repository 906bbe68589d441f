"""Models that were measured side by side, at several points: which is how fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from onnxbuild.onnxkit.latency import summarize_turns
from onnxbuild.onnxkit.ratios import Ratio, ratio_over
from onnxbuild.onnxkit.raw_samples import read_samples


class MeasuredTrials:
    """Some of the models of a benchmark's report.

    Args:
        folder: The report's, with the raw samples.
        points: Where they were measured.
        names: Of the models.
    """

    def __init__(self, folder: Path, points: Sequence[str], names: Sequence[str]) -> None:
        self._points = tuple(points)
        self._turns = {
            name: {point: read_samples(folder, point, name) for point in points} for name in names
        }

    def p50_ms(self, name: str) -> dict[str, float]:
        """Point -> median latency."""
        return {point: summarize_turns(turns).p50_ms for point, turns in self._turns[name].items()}

    def latency_ms(self, name: str) -> float:
        """Geometric mean of the medians over the points."""
        medians = self.p50_ms(name).values()
        return math.exp(sum(map(math.log, medians)) / len(medians))

    def ratio(self, one: str, other: str) -> Ratio:
        """How long one takes by how long the other does, over the points."""
        return ratio_over([(self._turns[one][p], self._turns[other][p]) for p in self._points])
