"""Figures of a variant in a release: size, error, score, latency."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.benchmark.baseline import BEFORE, ShownBaseline, baseline_of
from onnxbuild.onnxkit.bundles.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Latency:
    """One measurement.

    Attributes:
        provider: Short name of the execution provider.
        point: The sizes it was measured at, `batch=1`.
        p50_ms: Median, in ms.
        low_ms: Least median that the measurement leaves possible; see `benchmark.json`.
        high_ms: Greatest.
        ratio: p50_ms by the baseline's; None if that was not measured.
        speedup: How many times as fast as the baseline, and its 95 % confidence interval, low and high;
            None each where it was not measured.
        baseline: What that is.
    """

    provider: str
    point: str
    p50_ms: float
    low_ms: float
    high_ms: float
    ratio: float | None
    speedup: tuple[float | None, float | None, float | None] = (None, None, None)
    baseline: ShownBaseline = BEFORE


@dataclass(frozen=True, slots=True)
class Figures:
    """One bundle.

    Attributes:
        precision: `fp32`, `fp16`, `int8` or `int4`.
        model_bytes: Size of the model's files.
        errors: Provider -> greatest absolute difference from the reference, in the output's unit.
        cosines: Provider -> least cosine similarity with the reference's outputs.
        equals: Provider -> least share of equal elements of an integer, bool or string output.
        scores: Provider -> the user's metric; empty if the recipe evaluates nothing.
        latencies: As they were locked.
    """

    precision: str
    model_bytes: int
    errors: Mapping[str, float]
    cosines: Mapping[str, float]
    equals: Mapping[str, float]
    scores: Mapping[str, float]
    latencies: tuple[Latency, ...]


def figures_of(variant: Mapping[str, Any], manifest: Manifest, lock: Lock) -> Figures:
    """Return the numbers of one bundle.

    Args:
        variant: Its entry in release.json.
    """
    metrics = {name: each.metrics or {} for name, each in manifest.validation.items()}
    return Figures(
        precision=manifest.precision,
        model_bytes=manifest.size_bytes,
        errors=_numbers({name: each["max_abs"] for name, each in metrics.items()}),
        cosines=_numbers({name: each["cosine_min"] for name, each in metrics.items()}),
        equals=_numbers({name: each.get("equal_min") for name, each in metrics.items()}),
        scores=_numbers({name: each["score"] for name, each in manifest.evaluation.items()}),
        latencies=latencies_of(
            variant["variant"],
            {
                provider: lock.measurements[step]
                for provider, step in variant["benchmarks"].items()
            },
        ),
    )


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def latencies_of(variant: str, reports: Mapping[str, Any]) -> tuple[Latency, ...]:
    """Return what was measured of a variant.

    Args:
        reports: Provider -> the report of the measurement there.
    """
    return tuple(
        _latency(provider, point, found, baseline_of(report))
        for provider, report in sorted(reports.items())  # as release.json has them
        for point in report["points"]
        if (found := point["results"].get(variant)) is not None  # none: it does not run there
    )


def _latency(
    provider: str, point: Mapping[str, Any], found: Mapping[str, Any], baseline: ShownBaseline
) -> Latency:
    base = point["results"].get(baseline.name)
    return Latency(
        provider=provider,
        point=point["point"],
        p50_ms=found["p50_ms"],
        low_ms=found["p50_low_ms"],
        high_ms=found["p50_high_ms"],
        ratio=None if base is None else found["p50_ms"] / base["p50_ms"],
        speedup=(found.get("speedup"), found.get("speedup_low"), found.get("speedup_high")),
        baseline=baseline,
    )
