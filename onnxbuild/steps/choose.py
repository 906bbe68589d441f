"""Of several ways to make a variant, the fastest that meets a goal."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.goals import Goal, asked, missed, reached, written
from onnxbuild.onnxkit.measured_trials import MeasuredTrials
from onnxbuild.onnxkit.model_files import hand_on
from onnxbuild.onnxkit.pareto import pareto_front
from onnxbuild.onnxkit.ratios import Ratio
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sample_vectors import SampleErrors, read_errors
from onnxbuild.onnxkit.scatter import Point, scatter_svg

PLOT_FILE = "front.svg"

UNCHANGED = "fp32"
"""What is measured beside the trials: the model that all of them are made from."""

_TIE = 0.03
"""Trials that are slower than the fastest by no more are as fast: the most faithful is taken."""

_DOUBT = 0.06
"""A trial that may be faster than the chosen by more is told of: the measurement was too noisy."""

_CHOOSING, _JUDGING = (0, 2), (1, 2)
"""Samples of the `fidelity` data, as (first, step): a trial is chosen by one half and held to the
goal on the other, so that luck in the one is not taken for quality."""

_LEAST_SPLIT = 20
"""With fewer samples both halves are all of them."""


@dataclass(frozen=True, slots=True)
class AutoOptions:
    """A search for the fastest variant that meets a goal."""

    goal: Goal = field(
        default_factory=Goal, metadata={"help": "what may be lost; all that is named must hold"}
    )
    trials: int = option(8, help="how many ways are tried at most", minimum=1, maximum=64)
    margin: float = option(
        0.1,
        help="share of the loss that the goal allows which a trial must leave unused on the half "
        "of the `fidelity` data that it is chosen by; the other half then judges without it",
        minimum=0,
        maximum=0.9,
    )
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
        margin: See AutoOptions.
        trials: In the order of the search.
        choice: The trial that a lock names; empty to choose by the benchmark.
    """

    variant: str
    goal: Goal
    margin: float
    trials: tuple[Trial, ...]
    choice: str


def run(context: StepContext) -> Outcome:
    """Write the chosen model, report.json (what was tried, what it gave), and a plot of the front.

    If no trial meets the goal, or the chosen one misses it where it is judged, that is a finding.
    """
    params: ChooseParams = context.params
    rows = [_row(context, trial) for trial in params.trials]
    measured = None if params.choice else _measured(context, params)
    names = [row["name"] for row in rows]
    fastest = min(names, key=measured.latency_ms) if measured else ""
    for row in rows:
        row.update(_speed(measured, row["name"], fastest))
    front = pareto_front([(row["latency"], _error(row), row["size_bytes"]) for row in rows])
    for number, row in enumerate(rows):
        row["on_front"] = number in front
        row["missed"] = missed(params.goal, row["choosing"], 0 if params.choice else params.margin)
        row["missed_judging"] = missed(params.goal, row["judging"])
    met = [row for row in rows if not row["missed"]]
    chosen = _fastest(met) if met else min(rows, key=lambda row: sum(row["missed"].values()))
    shutil.copytree(
        context.input(f"model/{chosen['name']}"),
        context.output("model"),
        copy_function=hand_on,
        dirs_exist_ok=True,
    )
    holds = bool(met) and not chosen["missed_judging"]
    _write(context, params, rows, chosen["name"] if holds else None)
    findings = _findings(params, chosen, any_met=bool(met))
    notes = (_told(params, chosen, len(rows)),) if holds and len(rows) > 1 else ()
    doubts = _doubts(params, met, chosen, measured) if holds else ()
    if holds and not params.choice:
        doubts = (*_few(params, chosen), *doubts)
    metrics = {"chosen": chosen["name"], "tried": len(rows), "met": len(met)}
    return Outcome(metrics=metrics, findings=findings, notes=(*notes, *doubts))


def _row(context: StepContext, trial: Trial) -> dict[str, Any]:
    """What a trial loses on either half of the data, and its size."""
    _check_ran(context, trial)
    scored = _report(context, f"evaluation/{trial.name}") or {}
    score = {"score": scored.get("score"), "drop": scored.get("drop")}
    name = f"fidelity/{trial.name}"
    errors = read_errors(context.input(name)) if name in context.input_names else None
    choosing, judging = (_half(errors, *half) | score for half in (_CHOOSING, _JUDGING))
    folder = context.input(f"model/{trial.name}")
    return {
        "name": trial.name,
        "written": trial.written,
        "choosing": choosing,
        "judging": judging,
        "halved": errors is not None and _is_halved(errors),
        "size_bytes": sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()),
    }


def _check_ran(context: StepContext, trial: Trial) -> None:
    for kind in ("fidelity", "evaluation"):
        skipped = (_report(context, f"{kind}/{trial.name}") or {}).get("skipped")
        if skipped:
            raise StepError(
                f"trial '{trial.name}' can't be judged on the first target: {skipped}",
                where=context.where,
                fix="put a target first in `providers` that runs it, such as `cpu`",
            )


def _half(errors: SampleErrors | None, first: int, step: int) -> dict[str, Any]:
    if errors is None:
        return {}
    found = asdict(errors.fidelity(first, step) if _is_halved(errors) else errors.fidelity())
    return {name: found[name] for name in ("samples", "cosine_mean", "cosine_min", "sqnr_db")}


def _is_halved(errors: SampleErrors) -> bool:
    return len(errors.cosines) >= _LEAST_SPLIT


def _measured(context: StepContext, params: ChooseParams) -> MeasuredTrials:
    report = _report(context, "benchmark")
    assert report is not None
    points = [point["point"] for point in report["points"]]
    return MeasuredTrials(
        context.input("benchmark"), points, [UNCHANGED, *(each.name for each in params.trials)]
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
    context: StepContext, params: ChooseParams, rows: Sequence[Mapping[str, Any]], name: str | None
) -> None:
    report = {
        "goal": asked(params.goal),
        "margin": params.margin,
        "chosen": name,
        "trials": rows,
    }
    folder = context.output("search")
    write_report(folder, report)
    if params.choice:
        return
    points = [
        Point(
            f"{row['name']}, {row['size_bytes'] / 2**20:.3g} MiB",
            max(_error(row), 0.0),
            row["latency"],
            row["on_front"],
        )
        for row in rows
    ]
    what = "drop of the score" if rows[0]["choosing"].get("cosine_mean") is None else "1 - cosine"
    plot = scatter_svg(f"{context.where}", f"{what}, mean", "latency, ms", points, log_x=True)
    (folder / PLOT_FILE).write_text(plot, encoding="utf-8")


def _error(row: Mapping[str, Any]) -> float:
    """The smaller, the more faithful."""
    if row["choosing"].get("cosine_mean") is not None:
        return 1.0 - float(row["choosing"]["cosine_mean"])
    return float(row["choosing"]["drop"] or 0.0)


def _fastest(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The most faithful of those that are as fast as the fastest."""
    if rows[0]["ratio"] is None:
        return rows[0]
    least = min(row["ratio"]["value"] for row in rows)
    return min((r for r in rows if r["ratio"]["value"] <= least * (1 + _TIE)), key=_error)


def _findings(
    params: ChooseParams, chosen: Mapping[str, Any], *, any_met: bool
) -> tuple[Finding, ...]:
    goal = written(params.goal)
    where = f"variant '{params.variant}'"
    if not any_met:
        margin = f" with a margin of {params.margin:g}" if params.margin else ""
        return (
            Finding(
                f"none of {len(params.trials)} trials meets the goal ({goal}){margin}; the nearest, "
                f"'{chosen['name']}', reaches {reached(params.goal, chosen['choosing'])}",
                where,
                "ask for less, raise `trials`, or add modes to `include`",
            ),
        )
    if chosen["missed_judging"]:
        samples = chosen["judging"].get("samples")
        return (
            Finding(
                f"'{chosen['name']}' meets the goal ({goal}) on the samples that it was chosen by "
                f"({reached(params.goal, chosen['choosing'])}), but not on the {samples} others: "
                f"{reached(params.goal, chosen['judging'])}",
                where,
                f"raise `margin` above {params.margin:g}, or yield more `fidelity` data",
            ),
        )
    return ()


def _told(params: ChooseParams, chosen: Mapping[str, Any], tried: int) -> str:
    split = params.goal.max_drop is None
    score = "" if split else "; the drop on the data that chose, too"
    return (
        f"variant '{params.variant}': '{chosen['name']}' is the fastest of {tried} trials that "
        f"meets the goal ({chosen['latency']:.3g} ms, {reached(params.goal, chosen['judging'])} "
        f"where it is judged{score}); written out: {chosen['written']}"
    )


def _doubts(
    params: ChooseParams,
    met: Sequence[Mapping[str, Any]],
    chosen: Mapping[str, Any],
    measured: MeasuredTrials | None,
) -> tuple[str, ...]:
    """Trials that meet the goal, too, and may be faster."""
    found = []
    for row in met:
        if row is chosen or measured is None:
            continue
        ratio = measured.ratio(row["name"], chosen["name"])
        if ratio.low < 1 / (1 + _DOUBT):
            bounds = f" ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.low else ""
            found.append(f"'{row['name']}' {ratio.value:.2f} x{bounds}")
    slower = chosen["speedup"] is not None and (chosen["speedup"]["high"] or 1) < 1
    notes = (_slower(params, chosen),) if slower else ()
    if not found:
        return notes
    note = (
        f"variant '{params.variant}': the machine was too noisy to tell whether others that meet "
        f"the goal are faster than '{chosen['name']}': its time is {', '.join(found)}; search again "
        "when it is idle"
    )
    return (*notes, note)


def _few(params: ChooseParams, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    samples = chosen["judging"].get("samples")
    if samples is None or chosen["halved"]:
        return ()
    told = f"{samples} samples" if samples > 1 else "one sample"
    note = (
        f"variant '{params.variant}': {told} of `fidelity` data both choose and judge, and other "
        f"data may not keep the goal; yield {_LEAST_SPLIT} or more"
    )
    return (note,)


def _slower(params: ChooseParams, chosen: Mapping[str, Any]) -> str:
    ratio = chosen["speedup"]
    return (
        f"variant '{params.variant}': '{chosen['name']}' is slower than fp32 on this machine "
        f"({ratio['value']:.2f} x, {ratio['low']:.2f} to {ratio['high']:.2f}): it saves size alone"
    )


KIND = StepKind(
    name="choose",
    version=5,
    params=ChooseParams,
    inputs=("model/*", "fidelity/*", "evaluation/*", "benchmark?"),
    outputs={"model": "onnx-model", "search": "report"},
    toolchain=("numpy",),
    run=run,
    options=AutoOptions,
)
