"""Models that were measured side by side, at several points: which is how fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from onnxbuild.onnxkit.timing.ratios import Ratio, chained, paired, ratio_over
from onnxbuild.onnxkit.timing.rounds import Turns, summarize_turns
from onnxbuild.onnxkit.timing.samples_file import read_groups


class MeasuredTrials:
    """Latencies of some of the models in a benchmark's report.

    Args:
        folder: The report's, with the raw samples.
        points: Where they were measured.
        names: Of the models.
    """

    def __init__(self, folder: Path, points: Sequence[str], names: Sequence[str]) -> None:
        self._points = tuple(points)
        self._groups = {
            name: {point: read_groups(folder, point, name) for point in points} for name in names
        }

    def p50_ms(self, name: str) -> dict[str, float]:
        """Point -> median latency."""
        return {
            point: summarize_turns([turn for group in groups for turn in group]).p50_ms
            for point, groups in self._groups[name].items()
        }

    def latency_ms(self, name: str) -> float:
        """Geometric mean of the medians over the points."""
        medians = self.p50_ms(name).values()
        return math.exp(sum(map(math.log, medians)) / len(medians))

    def ratio(self, one: str, other: str) -> Ratio:
        """Return the ratio of two latencies, over the points.

        Two that were in no group together are compared through one that was in both of theirs.
        """
        if pairs := self._pairs(one, other):
            return ratio_over(pairs)
        for between in self._groups:
            first, second = self._pairs(one, between), self._pairs(between, other)
            if first and second:
                return chained(ratio_over(first), ratio_over(second))
        raise KeyError(
            f"'{one}' and '{other}' were measured together with no trial that is in both groups"
        )

    def _pairs(self, one: str, other: str) -> list[tuple[Turns, Turns]]:
        """Return two models' paired turns at each point; empty if a point has none."""
        found = [paired(self._groups[one][p], self._groups[other][p]) for p in self._points]
        return found if all(turns for turns, _ in found) else []
