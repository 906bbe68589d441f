"""Of several ways to make a variant, the fastest that meets a goal."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from onnxbuild.core.params import option
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.pareto import pareto_front
from onnxbuild.onnxkit.reports import write_report

_TIE = 0.03
"""Latencies that are nearer than this share are one: of those, the more faithful is taken."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a variant must keep of the fp32 model, over the `fidelity` or the `evaluate` data."""

    cosine_mean: float | None = option(
        None, help="least mean cosine similarity of the samples", minimum=-1, maximum=1
    )
    cosine_min: float | None = option(
        None, help="least cosine similarity of any sample", minimum=-1, maximum=1
    )
    sqnr_db: float | None = option(None, help="least signal-to-noise ratio over all samples, dB")
    max_drop: float | None = option(
        None, help="how far the `evaluate` score may lie below PyTorch's", minimum=0
    )


@dataclass(frozen=True, slots=True)
class AutoOptions:
    """A search for the fastest variant that meets a goal."""

    goal: Goal = field(
        default_factory=Goal, metadata={"help": "what may be lost; all that is named must hold"}
    )
    trials: int = option(8, help="how many ways are tried at most", minimum=1, maximum=64)
    include: tuple[Literal["dynamic", "static", "weight_only", "fp16"], ...] = option(
        (), help="modes to try; empty: dynamic, and static where calibration.data is named"
    )


@dataclass(frozen=True, slots=True)
class Trial:
    """One way.

    Attributes:
        name: Of its steps.
        written: The variant in YAML that is this trial.
    """

    name: str
    written: str


@dataclass(frozen=True, slots=True)
class ChooseParams:
    """All that steers the choice.

    Attributes:
        variant: The variant's name.
        goal: What must hold.
        trials: In the order of the search.
        choice: The trial that a lock names; empty to choose by the benchmark.
    """

    variant: str
    goal: Goal
    trials: tuple[Trial, ...]
    choice: str


def run(context: StepContext) -> Outcome:
    """Write the chosen model, and report.json: what was tried, what it gave, what is best in what.

    If no trial meets the goal, the nearest is told as a finding.
    """
    params: ChooseParams = context.params
    rows = [_row(context, trial) for trial in params.trials]
    front = pareto_front([(row["latency"], _error(row), row["size_bytes"]) for row in rows])
    for number, row in enumerate(rows):
        row["missed"] = _missed(params.goal, row)
        row["on_front"] = number in front
    met = [row for row in rows if not row["missed"]]
    chosen = _fastest(met) if met else min(rows, key=lambda row: sum(row["missed"].values()))
    target = context.output("model")
    shutil.copytree(context.input(f"model/{chosen['name']}"), target, dirs_exist_ok=True)
    report = {"goal": _asked(params.goal), "chosen": chosen["name"] if met else None}
    write_report(context.output("search"), {**report, "trials": rows})
    findings = () if met else (_unmet(params, chosen),)
    notes = (_told(params, chosen, len(rows)),) if met and len(rows) > 1 else ()
    metrics = {"chosen": chosen["name"], "tried": len(rows), "met": len(met)}
    return Outcome(metrics=metrics, findings=findings, notes=notes)


def _row(context: StepContext, trial: Trial) -> dict[str, Any]:
    """What is known of a trial; `latency` is the geometric mean over points, in ms, 0 if locked."""
    row: dict[str, Any] = {"name": trial.name, "written": trial.written}
    told = _report(context, f"fidelity/{trial.name}") or {}
    row |= {name: told.get(name) for name in ("cosine_mean", "cosine_min", "sqnr_db")}
    scored = _report(context, f"evaluation/{trial.name}") or {}
    row |= {"score": scored.get("score"), "drop": scored.get("drop")}
    measured = _report(context, "benchmark")
    points = (
        {}
        if measured is None
        else {
            point["point"]: point["results"][trial.name]["p50_ms"] for point in measured["points"]
        }
    )
    row["p50_ms"] = points
    row["latency"] = math.exp(sum(map(math.log, points.values())) / len(points)) if points else 0.0
    folder = context.input(f"model/{trial.name}")
    row["size_bytes"] = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    return row


def _report(context: StepContext, name: str) -> dict[str, Any] | None:
    if name not in context.input_names:
        return None
    found: dict[str, Any] = json.loads((context.input(name) / REPORT_FILE).read_text("utf-8"))
    return found


def _error(row: Mapping[str, Any]) -> float:
    """The smaller, the more faithful."""
    if row["cosine_mean"] is not None:
        return 1.0 - float(row["cosine_mean"])
    return float(row["drop"] or 0.0)


def _asked(goal: Goal) -> dict[str, float]:
    values = {field.name: getattr(goal, field.name) for field in fields(goal)}
    return {name: value for name, value in values.items() if value is not None}


def _missed(goal: Goal, row: Mapping[str, Any]) -> dict[str, float]:
    """Goal -> by how much it is missed, as a share of what may be lost; those met are left out."""
    missed = {}
    for name, bound in _asked(goal).items():
        value = row["drop" if name == "max_drop" else name]
        if value is None:  # no noise at all, or nothing to tell
            continue
        lacking = value - bound if name == "max_drop" else bound - value
        if lacking > 0:
            allowed = {"cosine_mean": 1 - bound, "cosine_min": 1 - bound}.get(name, abs(bound))
            missed[name] = lacking / max(allowed, 1e-9)
    return missed


def _fastest(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    least = min(row["latency"] for row in rows)
    near: Iterable[dict[str, Any]] = (r for r in rows if r["latency"] <= least * (1 + _TIE))
    return min(near, key=_error)


def _reached(goal: Goal, row: Mapping[str, Any]) -> str:
    parts = []
    for name in _asked(goal):
        value = row["drop" if name == "max_drop" else name]
        shown = "drop" if name == "max_drop" else name
        parts.append(f"{shown} {value:.5g}" if value is not None else f"{shown} without loss")
    return ", ".join(parts)


def _unmet(params: ChooseParams, nearest: Mapping[str, Any]) -> Finding:
    goal = ", ".join(f"{name} {bound:g}" for name, bound in _asked(params.goal).items())
    return Finding(
        f"none of {len(params.trials)} trials meets the goal ({goal}); the nearest, "
        f"'{nearest['name']}', reaches {_reached(params.goal, nearest)}",
        f"variant '{params.variant}'",
        "ask for less, raise `trials`, or add modes to `include`",
    )


def _told(params: ChooseParams, chosen: Mapping[str, Any], tried: int) -> str:
    return (
        f"variant '{params.variant}': '{chosen['name']}' is the fastest of {tried} trials that "
        f"meets the goal ({chosen['latency']:.3g} ms, {_reached(params.goal, chosen)}); "
        f"written out: {chosen['written']}"
    )


KIND = StepKind(
    name="choose",
    version=1,
    params=ChooseParams,
    inputs=("model/*", "fidelity/*", "evaluation/*", "benchmark?"),
    outputs={"model": "onnx-model", "search": "report"},
    toolchain=(),
    run=run,
    options=AutoOptions,
)
