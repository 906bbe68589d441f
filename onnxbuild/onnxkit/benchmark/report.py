"""The report of a benchmark: figures of each point, ratios with intervals, and their meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from onnxbuild.core.axis import Point
from onnxbuild.onnxkit.benchmark.candidate import Contender
from onnxbuild.onnxkit.host.load import Conditions
from onnxbuild.onnxkit.timing.ratios import Ratio, paired, percentile_ratio, ratio_of
from onnxbuild.onnxkit.timing.rounds import (
    Groups,
    RunnerLatency,
    Turns,
    summarize_turns,
    warmup_rounds,
)

METHOD = {
    "latency": "rounds of short bursts, all models interleaved in random order in one process; "
    "each burst after a pause of 10 ms (50 ms where a session's threads may spin on) and one run "
    "thrown away (none of those over 50 ms); the first "
    "`warmup_rounds` rounds left out, until the clock settles (MSER-5); inputs and outputs are "
    "numpy arrays (tensors for PyTorch and the programs that it runs; the baseline's as `baseline.how` says)",
    "load_s, first_inference_ms": "wall time to make the session and to run it once, each alone in "
    "a fresh process with its runtime imported; for the baseline, to call the entrypoint or to read the "
    "model, for programs other than ONNX to read the file",
    "peak_rss_growth_bytes, steady_rss_growth_bytes": "resident memory of that process while the "
    "model is loaded and run once at each point (peak, sampled each ms), and after ten more runs (no more after a second), "
    "less that before",
    "p50_low_ms, p50_high_ms": "hold the median with 95 % confidence, from the medians of 16 "
    "stretches of the measurement",
    "stable": "those bounds are within 5 % or 0.02 ms of the median, whichever is more",
    "speedup": "the baseline's time by the variant's: median of the ratios of turns of one round",
    "speedup_low, speedup_high": "hold it with 95 % confidence (block bootstrap over the rounds)",
    "speedup_p90, speedup_p95, speedup_p99": "[ratio, low, high] of percentiles of all runs",
    "against": "the comparison model's time by this model's, as speedup: [ratio, low, high]",
    "samples.npz": "every run that was measured, in nanoseconds, and the runs in each turn",
    "concurrency": "windows of 0.3 s, interleaved in random order, in which so many threads ask "
    "one after the other; median of the windows' rates, with its 95 % bounds",
    "joules_per_run": "what all processor packages used while one model ran for half a second, "
    "idle power included; absent where the machine does not report it",
    "conditions": "of the machine while latencies were measured; others_busy_percent is the share "
    "of the usable cores that other processes took",
}
_TAILS = (90, 95, 99)

MEASURED_ON = "measured_on"
"""Metric of a benchmark that any machine may have measured: which one did."""


IN_GROUPS = {
    "groups": "memory did not hold all models at once: those of a group are interleaved with each "
    "other, one group after the other; what others are compared with is in each, and a ratio is of "
    "turns of one group"
}
"""Addition to METHOD for several groups."""


PER_TOKEN = {"decode": "decode", "tokens": "whole texts"}
"""Kind of a point at which an item is a new token -> in words."""


def kind_words(point: Mapping[str, Any]) -> str:
    """Return what a point of a decoder is, `decode`; empty for any other model's."""
    kind = point.get("kind")
    if kind == "prefill":
        return "prefill, the median is the time to the first token"
    return PER_TOKEN.get(kind, "several new elements after a past") if kind else ""


def report_file(target: str = "") -> str:
    """Return the name of a report next to a bundle: of the first target's without its name."""
    return f"benchmark-{target}.json" if target else "benchmark.json"


@dataclass(frozen=True, slots=True)
class Measured:
    """A point's figures.

    Attributes:
        warmup: Rounds that were left out, of all groups.
        groups: Contender -> its turns after the warm-up, for each group.
        latency: Contender -> its figures.
        ratios: Contender -> how many times as fast as the baseline; empty if that was not measured.
        baseline: Its name; empty likewise.
    """

    warmup: int
    groups: Groups
    latency: Mapping[str, RunnerLatency]
    ratios: Mapping[str, Ratio]
    baseline: str = ""

    @classmethod
    def of(cls, rounds: Groups, baseline: str) -> Measured:
        """The figures of what `measure_turns` gave for each group.

        Args:
            rounds: Contender -> its turns, for each group.
            baseline: The contender that others are compared with; empty for none.
        """
        cuts = [warmup_rounds(group) for group in rounds]
        kept = [
            {name: turns[cut:] for name, turns in group.items()}
            for group, cut in zip(rounds, cuts, strict=True)
        ]
        names = dict.fromkeys(name for group in kept for name in group)
        found = cls(sum(cuts), kept, {n: summarize_turns(_turns_of(kept, n)) for n in names}, {})
        if baseline not in names:
            return found
        ratios = {n: ratio_of(*found.pair(baseline, n)) for n in names}
        return replace(found, ratios=ratios, baseline=baseline)

    def pair(self, one: str, other: str) -> tuple[Turns, Turns]:
        """The turns of two contenders in the groups that both were in."""
        return paired(
            [group.get(one, ()) for group in self.groups],
            [group.get(other, ()) for group in self.groups],
        )


def _turns_of(groups: Groups, name: str) -> Turns:
    return [turn for group in groups for turn in group.get(name, ())]


def show_point(
    point: Point, items: int, measured: Measured, comparison_models: Sequence[str] = ()
) -> dict[str, object]:
    """Return a point's part of the report.

    Args:
        items: Samples in a run.
        comparison_models: Models that the others are compared with.
    """
    results = {
        name: {
            **asdict(latency),
            "throughput_items_per_s": round(items / latency.p50_ms * 1e3, 3),
            **_speedup(measured.ratios.get(name)),
            **_tails(measured, name),
            **_against(measured, name, comparison_models),
        }
        for name, latency in measured.latency.items()
    }
    return {
        "point": point.name,
        "sizes": dict(point.sizes),
        "items": items,
        "warmup_rounds": measured.warmup,
        "results": results,
    }


def _speedup(ratio: Ratio | None) -> dict[str, float | None]:
    if ratio is None:
        return dict.fromkeys(("speedup", "speedup_low", "speedup_high"))
    value, low, high = _rounded(ratio)
    return {"speedup": value, "speedup_low": low, "speedup_high": high}


def _tails(measured: Measured, name: str) -> dict[str, object]:
    """Ratios of high percentiles to the baseline's."""
    if name == measured.baseline or not measured.baseline:
        return {}
    pair = measured.pair(measured.baseline, name)
    return {f"speedup_p{each}": _rounded(percentile_ratio(*pair, each)) for each in _TAILS}


def _against(measured: Measured, name: str, comparison_models: Sequence[str]) -> dict[str, object]:
    """Return the speedup over each other comparison model; empty if there is none."""
    others = [other for other in comparison_models if other != name]
    if not others:
        return {}
    ratios = {other: ratio_of(*measured.pair(other, name)) for other in others}
    return {"against": {other: _rounded(ratio) for other, ratio in ratios.items()}}


def _rounded(ratio: Ratio) -> list[float | None]:
    known = ratio.low > 0
    bounds = (ratio.low, ratio.high) if known else (None, None)
    return [None if each is None else round(each, 3) for each in (ratio.value, *bounds)]


def table_metrics(
    point: Point, measured: Measured, contenders: Sequence[Contender], found: Conditions
) -> dict[str, object]:
    """Return the metrics of the table: each variant, and the baseline, at the first point."""
    return {
        "point": point.name,
        "noisy": bool(found.noisy),
        "variants": {
            each.name: {
                "p50_ms": measured.latency[each.name].p50_ms,
                **_speedup(measured.ratios.get(each.name)),
                "stable": measured.latency[each.name].stable,
                "size_bytes": each.size_bytes,
            }
            for each in contenders
            if each.name in measured.latency
        },
    }


def group_notes(groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the note on groups, where memory did not hold all models at once.

    Args:
        groups: Names of the contenders of each group.
    """
    notes = []
    if len(groups) > 1:
        shared = [name for name in groups[0] if all(name in group for group in groups)]
        listed = "; ".join(
            ", ".join(name for name in group if name not in shared) for group in groups
        )
        notes.append(
            f"memory does not hold all models at once: measured in {len(groups)} groups, each with "
            f"{', '.join(shared)}: {listed}"
        )
    return tuple(notes)


def doubts(
    found: Conditions, measured: Mapping[str, Measured], *, ranking: bool
) -> tuple[str, ...]:
    """Return why figures have a `?` in the table; `run --verbose` prints it.

    Args:
        found: Conditions of the machine during the benchmark.
        measured: Point -> its figures.
        ranking: Whether only ratios count, which hold on a busy machine.
    """
    said = [f"the machine was noisy: {why}" for why in found.noisy]
    shaky = sorted({n for m in measured.values() for n, x in m.latency.items() if not x.stable})
    if shaky and not ranking:
        said.append(
            f"latency did not settle within `benchmark.max_time_s`: {', '.join(shaky)}; see "
            "`p50_low_ms` and `p50_high_ms` in benchmark.json"
        )
    return tuple(said)
