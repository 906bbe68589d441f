"""Costs of the steps of runs, and their bytes on disk, read from a store's own records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.action import ActionResult


@dataclass(frozen=True)
class StepCost:
    """Time and memory that one step took.

    Attributes:
        peak_bytes: Greatest resident memory of its process, mapped files included.
        failure: What it said; empty if it did not fail.
    """

    step: str
    wall_s: float
    peak_bytes: int
    failure: str = ""


@dataclass(frozen=True)
class DiskUse:
    """Bytes on disk after a run.

    Attributes:
        models: Of the distinct models (by content) that steps made.
        named: Of all models that steps made, and of those in bundles, each as often as it comes.
        blobs: In the store.
        views: Of what is laid out for people, which is a copy where the filesystem shares no blocks.
    """

    models: int
    named: int
    blobs: int
    views: int


def costs_of(store: Path) -> list[StepCost]:
    """Return the cost of each step's last build, in the order in which the steps were built."""
    costs: dict[str, StepCost] = {}
    for events in sorted(store.glob("runs/*/events.jsonl")):
        for line in events.read_text().splitlines():
            cost = _cost_of(json.loads(line))
            if cost is not None:
                costs.pop(cost.step, None)
                costs[cost.step] = cost
    return list(costs.values())


def _cost_of(event: Mapping[str, Any]) -> StepCost | None:
    name = str(event.get("step", "")).partition(":")[2]
    if event["type"] == "step_finished":
        return StepCost(name, event["wall_s"], event["peak_bytes"])
    if event["type"] == "step_failed":
        return StepCost(name, 0.0, 0, event["what"])
    return None


def exported_bytes(store: Path) -> int:
    """The largest model that a step made: fp32, as exported or fused."""
    return max((sum(files.values()) for files in _models(store)), default=0)


def disk_use(store: Path) -> DiskUse:
    """Return the bytes on disk, and how many of them are models."""
    models = _models(store)
    return DiskUse(
        models=sum({sha: size for files in models for sha, size in files.items()}.values()),
        named=sum(size for files in models for size in files.values()),
        blobs=_bytes_below(store / "cas"),
        views=_bytes_below(store / "out"),
    )


def _models(store: Path) -> list[dict[str, int]]:
    """Of each model that a step made, and of each bundle's: blob -> size."""
    found = []
    for path in sorted(store.glob("ac/*/*.json")):
        result = ActionResult.from_json(json.loads(path.read_text())["traces"][0])
        for artifact in result.outputs.values():
            files = {d.sha256: d.size_bytes for name, d in artifact.files if "model.onnx" in name}
            found += [files] if files else []
    return found


def _bytes_below(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
