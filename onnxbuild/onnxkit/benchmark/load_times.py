"""Measure how long models take to load, each time in a process of its own, taking turns."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.benchmark.candidate import Contender, LoadCost, cost_alone
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.timing.ratios import ratio_of

ROUNDS = 7
"""The ratios' intervals say next to nothing with fewer than six."""

_NS = 1e9


def measure_loads(
    contenders: Sequence[Contender], feeds: Feeds, where: str, *, rounds: int = ROUNDS
) -> dict[str, list[LoadCost]]:
    """Load each contender once a round, in random order.

    Args:
        contenders: Named differently.
        feeds: Feeds that each runs on once it is loaded.
        where: `recipe:step`, for messages.
        rounds: Number of rounds.

    Returns: Name -> what each round found.

    Raises:
        StepError: One does not load or run.
    """
    order = random.Random(0)  # noqa: S311 - a shuffle that is the same each time
    found: dict[str, list[LoadCost]] = {each.name: [] for each in contenders}
    for _ in counted(range(rounds), "rounds"):
        for each in order.sample(list(contenders), len(contenders)):
            found[each.name].append(cost_alone(each, {"example": feeds}, where))
    return found


def load_report(found: Mapping[str, Sequence[LoadCost]], baseline: str) -> dict[str, Any]:
    """Name -> medians of `load_ms`, `first_inference_ms` and `peak_rss_growth_bytes`, and `speedup`.

    Args:
        found: Result of `measure_loads`.
        baseline: Name of the one that the others are compared with; its speedup is left out.

    `speedup` is the baseline's load time by each one's: [value, low, high] with 95 % confidence.
    """
    turns = {name: [[int(c.load_s * _NS)] for c in costs] for name, costs in found.items()}
    report: dict[str, Any] = {}
    for name, costs in found.items():
        entry: dict[str, Any] = {
            "load_ms": round(1e3 * statistics.median(c.load_s for c in costs), 3),
            "first_inference_ms": statistics.median(c.first_inference_ms for c in costs),
            "peak_rss_growth_bytes": int(
                statistics.median(c.peak_rss_growth_bytes for c in costs)
            ),
        }
        if name != baseline:
            ratio = ratio_of(turns[baseline], turns[name])
            entry["speedup"] = [round(x, 4) for x in (ratio.value, ratio.low, ratio.high)]
        report[name] = entry
    return report
