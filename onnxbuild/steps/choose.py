"""Choice of the fastest of several ways to make a variant that meet a goal."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.sample_outputs import noise_of, read_errors
from onnxbuild.onnxkit.model.model_files import first_equals, hand_on
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.search import goals
from onnxbuild.onnxkit.search.goals import (
    CHOOSING,
    JUDGING,
    LEAST_SPLIT,
    Goal,
    MeasuredTrials,
    asked,
    figures_of,
    is_halved,
    missed,
    pareto_front,
    refuse_cosines,
)
from onnxbuild.onnxkit.timing.ratios import Ratio

PLOT_FILE = "front.svg"

UNCHANGED = "fp32"
"""Name of the model that all trials are made from; it is measured together with them."""

_TIE = 0.03
"""Trials that are slower than the fastest by no more are as fast: the most faithful is taken."""


Tried = Literal["dynamic", "static", "weight_only", "fp16"]
"""Modes that a search may try."""


@dataclass(frozen=True, slots=True)
class AutoOptions:
    """A search for the fastest variant that meets a goal."""

    goal: Goal = field(
        default_factory=Goal, metadata={"help": "what may be lost; all that is named must hold"}
    )
    trials: int = option(8, help="most trials", minimum=1, maximum=64)
    margin: float = option(
        0.1,
        help="share of the loss allowed by the goal that a trial must leave unused on the half of the "
        "data that chooses; the other half judges without this margin",
        minimum=0,
        maximum=0.9,
    )
    include: tuple[Tried, ...] = option(
        (), help="modes to try; empty: dynamic, and static where calibration.data is named"
    )


@dataclass(frozen=True, slots=True)
class MeasuredTrial:
    """One way.

    Attributes:
        name: Of its steps.
        written: The variant in YAML that is this trial.
    """

    name: str
    written: str

    def inputs(self, goal: Goal) -> tuple[str, ...]:
        """The step's inputs without which there is no such trial."""
        compared = any(name not in {"max_drop", "perplexity_ratio"} for name in asked(goal))
        scored, generated = goal.max_drop is not None, goal.perplexity_ratio is not None
        kinds = (
            "model",
            *["fidelity"] * compared,
            *["evaluation"] * scored,
            *["generation"] * generated,
        )
        return tuple(f"{kind}/{self.name}" for kind in kinds)


@dataclass(frozen=True, slots=True)
class ChooseParams:
    """Parameters of a choice.

    Attributes:
        variant: The variant's name.
        goal: What must hold.
        margin: See AutoOptions.
        trials: In the order of the search.
        choice: The trial that a lock names; empty to choose by the benchmark.
    """

    variant: str
    goal: Goal
    margin: float
    trials: tuple[MeasuredTrial, ...]
    choice: str


def run(context: StepContext) -> Outcome:
    """Write the chosen model, report.json (what was tried, what it gave), and a plot of the front.

    If no trial meets the goal, or the chosen one misses it where it is judged, that is a finding.

    Raises:
        StepError: No trial is applicable to the model, or the first target for a trial.
    """
    params: ChooseParams = context.params
    trials, not_applicable = _there(context, params)
    rows = [_row(context, trial) for trial in trials]
    equals = first_equals({each.name: context.input(f"model/{each.name}") for each in trials})
    for row in rows:
        row.update({"same_as": equals[row["name"]]} if row["name"] in equals else {})
    by_size = params.goal.size is not None
    measured = None if params.choice or by_size else _measured(context, trials)
    names = [row["name"] for row in rows]
    fastest = min(names, key=measured.latency_ms) if measured else ""
    for row in rows:
        row.update(_speed(measured, row["name"], fastest))
    front = pareto_front([(row["latency"], _error(row), row["size_bytes"]) for row in rows])
    for number, row in enumerate(rows):
        row["on_front"] = number in front
        row["missed"] = missed(params.goal, row["choosing"], 0 if params.choice else params.margin)
        row["missed_judging"] = missed(params.goal, row["judging"])
    met = [row for row in rows if not row["missed"] and not row["lost_parts"]]
    best = _smallest if by_size else _fastest
    chosen = best(met) if met else min(rows, key=_distance)
    shutil.copytree(
        context.input(f"model/{chosen['name']}"),
        context.output("model"),
        copy_function=hand_on,
        dirs_exist_ok=True,
    )
    holds = bool(met) and not chosen["missed_judging"]
    _write(context, params, rows, chosen["name"] if holds else None, not_applicable)
    said = params.variant, params.goal
    findings: tuple[Finding, ...] = ()
    notes = [goals.not_applicable(params.variant, not_applicable)] if not_applicable else []
    notes += goals.lost(params.variant, rows)
    if not met:
        findings = (goals.none_meets(*said, params.margin, len(rows), chosen),)
    elif chosen["missed_judging"]:
        findings = (goals.misses_judging(*said, params.margin, chosen),)
    elif measured is not None:
        notes += [goals.choice(*said, chosen, len(rows))] if len(rows) > 1 else []
        notes += goals.few(*said, chosen, LEAST_SPLIT)
        notes += goals.doubts(params.variant, met, chosen, measured)
    elif not params.choice:
        notes += goals.smallest(*said, chosen, rows)
        notes += goals.few(*said, chosen, LEAST_SPLIT)
    metrics = {"chosen": chosen["name"], "tried": len(rows), "met": len(met)}
    return Outcome(metrics=metrics, findings=findings, notes=tuple(notes))


def _there(context: StepContext, params: ChooseParams) -> tuple[list[MeasuredTrial], list[str]]:
    """The trials that the model is fit for, and the names of the others."""
    there = [
        trial
        for trial in params.trials
        if set(trial.inputs(params.goal)) <= set(context.input_names)
    ]
    not_applicable = [trial.name for trial in params.trials if trial not in there]
    if not there:
        raise StepError(
            f"no trial is applicable to the model: {', '.join(not_applicable)}",
            where=context.where,
            fix="see above why, raise `trials`, or add modes to `include`",
        )
    return there, not_applicable


def _row(context: StepContext, trial: MeasuredTrial) -> dict[str, Any]:
    """Return the row of a trial: what it loses on either half of the data, and its size."""
    _check_ran(context, trial)
    scored = _report(context, f"evaluation/{trial.name}") or {}
    name = f"fidelity/{trial.name}"
    errors = read_errors(context.input(name)) if name in context.input_names else None
    is_one_number = errors is not None and errors.is_one_number
    if is_one_number:
        refuse_cosines(context.params.goal, context.where)
    prompts = (_report(context, f"generation/{trial.name}") or {}).get("by_prompt", [])
    choosing, judging = (figures_of(errors, scored, half, prompts) for half in (CHOOSING, JUDGING))
    folder = context.input(f"model/{trial.name}")
    return {
        "name": trial.name,
        "written": trial.written,
        "choosing": choosing,
        "judging": judging,
        "lost_parts": (_report(context, name) or {}).get("lost_parts", []),
        "halved": errors is not None and is_halved(errors),
        "halved_drop": bool(scored.get("half_drops")),
        **({"one_number": True} if is_one_number else {}),
        "size_bytes": sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()),
    }


def _check_ran(context: StepContext, trial: MeasuredTrial) -> None:
    for kind in ("fidelity", "evaluation", "generation"):
        skipped = (_report(context, f"{kind}/{trial.name}") or {}).get("skipped")
        if skipped:
            raise StepError(
                f"trial '{trial.name}' can't be judged on the first target: {skipped}",
                where=context.where,
                fix="put a target first in `providers` that runs it, such as `cpu`",
            )


def _measured(context: StepContext, trials: Sequence[MeasuredTrial]) -> MeasuredTrials:
    report = _report(context, "benchmark")
    assert report is not None
    points = [point["point"] for point in report["points"]]
    return MeasuredTrials(
        context.input("benchmark"), points, [UNCHANGED, *(each.name for each in trials)]
    )


def _speed(measured: MeasuredTrials | None, name: str, fastest: str) -> dict[str, Any]:
    """Latencies in ms, the ratio to the fastest trial's, and fp32's to its; 0 if not measured."""
    if measured is None:
        return {"p50_ms": {}, "latency": 0.0, "ratio": None, "speedup": None}
    return {
        "p50_ms": measured.p50_ms(name),
        "latency": measured.latency_ms(name),
        "ratio": _bounded(measured.ratio(name, fastest)),
        "speedup": _bounded(measured.ratio(UNCHANGED, name)),
    }


def _bounded(ratio: Ratio) -> dict[str, float | None]:
    """A ratio as JSON takes it: bounds that too few rounds leave open are None."""
    known = math.isfinite(ratio.high)
    low, high = (ratio.low, ratio.high) if known else (None, None)
    return {"value": ratio.value, "low": low, "high": high}


def _report(context: StepContext, name: str) -> dict[str, Any] | None:
    if name not in context.input_names:
        return None
    found: dict[str, Any] = json.loads((context.input(name) / REPORT_FILE).read_text("utf-8"))
    return found


def _write(
    context: StepContext,
    params: ChooseParams,
    rows: Sequence[Mapping[str, Any]],
    name: str | None,
    not_applicable: Sequence[str],
) -> None:
    from onnxbuild.onnxkit.report_page.blocks import Dot, Scatter
    from onnxbuild.onnxkit.report_page.charts import chart_file

    report = {
        "goal": asked(params.goal),
        "margin": params.margin,
        "chosen": name,
        "trials": rows,
        **({"unfit": list(not_applicable)} if not_applicable else {}),
    }
    folder = context.output("search")
    write_report(folder, report)
    if params.choice:
        return
    what = "noise to signal" if rows[0].get("one_number") else "1 - cosine, mean"
    if rows[0]["choosing"].get("cosine_mean") is None:
        what = "drop of the score, mean"
    if "kl" in rows[0]["choosing"]:
        what = "KL divergence, nats"
    by_size = params.goal.size is not None
    dots = tuple(
        Dot(
            label=f"{row['name']}, {row['size_bytes'] / 2**20:.3g} MiB",
            x=max(_error(row), 0.0),
            y=row["size_bytes"] / 2**20 if by_size else row["latency"],
            area=0.0,
            series="front" if row["on_front"] else "",
            on_front=row["on_front"],
            cells=(
                f"{max(_error(row), 0.0):.4g}",
                f"{row['size_bytes'] / 2**20 if by_size else row['latency']:.4g}",
            ),
        )
        for row in rows
        if "same_as" not in row
    )
    heads = ("trial", what, "size, MiB" if by_size else "latency, ms")
    plot = chart_file(Scatter(str(context.where), *heads[1:], dots, heads))
    (folder / PLOT_FILE).write_text(plot, encoding="utf-8")


def _error(row: Mapping[str, Any]) -> float:
    """The smaller, the more faithful."""
    if "kl" in row["choosing"]:
        return float(row["choosing"]["kl"])
    if row.get("one_number"):
        return noise_of(row["choosing"]["sqnr_db"])
    if row["choosing"].get("cosine_mean") is not None:
        return 1.0 - float(row["choosing"]["cosine_mean"])
    return float(row["choosing"]["drop"] or 0.0)


def _distance(row: Mapping[str, Any]) -> tuple[bool, float]:
    """Return the distance of a trial from the goal: a lost part is farther than any figure."""
    return bool(row["lost_parts"]), sum(row["missed"].values())


def _fastest(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The most faithful of those that are as fast as the fastest."""
    if rows[0]["ratio"] is None:
        return rows[0]
    least = min(row["ratio"]["value"] for row in rows)
    return min((r for r in rows if r["ratio"]["value"] <= least * (1 + _TIE)), key=_error)


def _smallest(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The most faithful of the smallest."""
    return min(rows, key=lambda row: (row["size_bytes"], _error(row)))


KIND = StepKind(
    name="choose",
    version=13,
    params=ChooseParams,
    inputs=("model/*", "fidelity/*", "evaluation/*", "generation/*", "benchmark?"),
    outputs={"model": "onnx-model", "search": "report"},
    toolchain=("numpy",),
    run=run,
)
