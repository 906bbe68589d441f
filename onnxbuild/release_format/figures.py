"""What a release says of a variant in numbers: size, error, score, latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.target import CPU
from onnxbuild.lock.model import Lock
from onnxbuild.providers import short_name

BASELINE = "pytorch"
_BESIDE_THE_MODEL = frozenset(
    {"load.py", "cpp/CMakeLists.txt", "cpp/main.cpp", "validation.json", "evaluation.json"}
)


@dataclass(frozen=True, slots=True)
class Latency:
    """One measurement.

    Attributes:
        provider: Short name of the execution provider.
        point: The sizes it was measured at, `batch=1`.
        p50_ms: Median, in ms.
        low_ms: Least median that the measurement leaves possible; see `benchmark.json`.
        high_ms: Greatest.
        ratio: p50_ms by PyTorch's; None if PyTorch was not measured.
        speedup: How many times as fast as PyTorch, and its 95 % confidence interval, low and high;
            None each where it was not measured.
    """

    provider: str
    point: str
    p50_ms: float
    low_ms: float
    high_ms: float
    ratio: float | None
    speedup: tuple[float | None, float | None, float | None] = (None, None, None)


@dataclass(frozen=True, slots=True)
class Figures:
    """One bundle.

    Attributes:
        precision: `fp32`, `fp16`, `int8` or `int4`.
        model_bytes: Size of the model's files.
        errors: Provider -> greatest absolute difference from PyTorch, in the output's unit.
        cosines: Provider -> least cosine similarity with PyTorch's outputs.
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


def figures_of(variant: Mapping[str, Any], manifest: Mapping[str, Any], lock: Lock) -> Figures:
    """The numbers of one bundle.

    Args:
        variant: Its entry in release.json.
        manifest: Its bundle's manifest.json.
        lock: The release's.
    """
    validation = _validation(manifest)
    scores = manifest.get("evaluation", {})
    return Figures(
        precision=manifest["precision"],
        model_bytes=_model_bytes(manifest),
        errors=_numbers({p: each["metrics"]["max_abs"] for p, each in validation.items()}),
        cosines=_numbers({p: each["metrics"]["cosine_min"] for p, each in validation.items()}),
        equals=_numbers({p: each["metrics"].get("equal_min") for p, each in validation.items()}),
        scores=_numbers({p: each["score"] for p, each in scores.items()}),
        latencies=tuple(_latencies(variant, lock)),
    )


def _validation(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Provider -> verdict: a model for one provider has it without its name."""
    found: Mapping[str, Any] = manifest["validation"]
    if "targets" in manifest:
        return found
    return {short_name(manifest.get("provider", CPU)): found}


def _model_bytes(manifest: Mapping[str, Any]) -> int:
    """What is made ahead of time says it; a program is its one file; else all but known others."""
    files = manifest["files"]
    if "size_bytes" in manifest:
        return int(manifest["size_bytes"])
    if "file" in manifest:
        return int(files[manifest["file"]]["size_bytes"])
    return sum(each["size_bytes"] for name, each in files.items() if name not in _BESIDE_THE_MODEL)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _latencies(variant: Mapping[str, Any], lock: Lock) -> Iterator[Latency]:
    for provider, step in sorted(variant["benchmarks"].items()):  # as release.json has them
        for point in lock.measurements[step]["points"]:
            results = point["results"]
            found, base = results.get(variant["variant"]), results.get(BASELINE)
            if found is None:
                continue  # none of it runs on that target
            yield Latency(
                provider=provider,
                point=point["point"],
                p50_ms=found["p50_ms"],
                low_ms=found["p50_low_ms"],
                high_ms=found["p50_high_ms"],
                ratio=None if base is None else found["p50_ms"] / base["p50_ms"],
                speedup=(
                    found.get("speedup"),
                    found.get("speedup_low"),
                    found.get("speedup_high"),
                ),
            )
