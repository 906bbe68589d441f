"""Score the reference or a variant with the user's own metric on the user's own data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.accuracy.user_metric import UserMetric
from onnxbuild.onnxkit.accuracy.validation_fixes import attempts_of, either
from onnxbuild.onnxkit.data.feeds import Feeds, rows_of
from onnxbuild.onnxkit.data.labelled_data import labelled_batches
from onnxbuild.onnxkit.export.torch_module import make_torch_deterministic
from onnxbuild.onnxkit.providers.open_on_target import NotOnTargetError, absence, open_on, skipped
from onnxbuild.onnxkit.ready_onnx.original_model import load_original, outputs_of_file
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import numpy as np

    from onnxbuild.onnxkit.accuracy.user_metric import Spread

_ROUNDING = 1e-9
"""0.99 - 0.98 is more than 0.01 in binary; a drop of exactly the bound passes."""


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """Your own metric, and the score that variants must reach."""

    of: Literal["model", "pipeline"] = option(
        "model",
        help="`model`: the data are the model's inputs; `pipeline`: they are raw inputs, and the pipelines of "
        "`processing` are scored instead of the variants",
    )
    min: float | None = option(None, help="least score of every variant")
    max_drop: float | None = option(
        None, help="how far a score may be below the reference's, in the metric's unit", minimum=0
    )
    confidence: float = option(
        0.95,
        help="confidence level of the intervals of score and drop",
        minimum=0.5,
        maximum=0.999,
    )
    resamples: int = option(
        200,
        help="bootstrap resamples of the data for the intervals; 0: no intervals",
        minimum=0,
    )


_PIPELINE_FIX = "compare `processing` with your own code, operation by operation"


@dataclass(frozen=True, slots=True)
class EvaluateParams:
    """Parameters of an evaluation.

    Attributes:
        data: A callable that yields (feeds, labels) for each batch, or returns one such pair of all samples.
        metric: A callable: (outputs, labels) -> float, greater is better; see `UserMetric`.
        model: What the user's callable returns is scored, as PyTorch; None scores the `model` artifact.
        target: Where that runs; None for PyTorch.
        session: How the variant's session runs it.
        precision: The variant's; empty for the reference and for pipelines.
        mode_options: Names of the options of the variant's mode; a fix names none that it lacks.
    """

    data: Entrypoint
    metric: Entrypoint
    model: Entrypoint | None
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    outputs: tuple[str, ...]
    variant: str
    target: Target | None
    options: EvaluateOptions
    session: SessionSettings = field(default_factory=SessionSettings)
    precision: str = ""
    mode_options: tuple[str, ...] = ()


def run(context: StepContext) -> Outcome:
    """Write report.json; a score under its gate is a finding.

    Raises:
        StepError: The data yields nothing, or not what the recipe declares, or the metric gives no
            finite number.
    """
    from onnxbuild.onnxkit.accuracy.user_metric import Resampling, halves_of, spread_of

    params: EvaluateParams = context.params
    if params.target is not None and (reason := absence(context)):
        return skipped(context, params.target, reason)
    try:
        predict = (
            _torch_predictor(context) if params.target is None else _runtime_predictor(context)
        )
    except NotOnTargetError as error:
        assert params.target is not None
        return skipped(context, params.target, str(error))
    outputs: list[dict[str, np.ndarray]] = []
    labels: list[object] = []
    sizes: list[int] = []
    for feeds, truth in labelled_batches(context, params.data, params.inputs, params.axes):
        outputs.append(predict(feeds))
        labels.append(truth)
        made = [int(each.shape[0]) for each in outputs[-1].values() if each.ndim]
        sizes.append(rows_of(feeds, params.inputs, made))
    if not labels:
        raise StepError(
            f"{params.data.target} yields nothing to evaluate on",
            where=context.where,
            fix="yield at least one (feeds, labels)",
        )
    scored = UserMetric(context, params.metric).score
    resampling = Resampling(outputs, labels, sizes)
    score = scored(*resampling.whole())
    baseline = _baseline(context)
    drop = None if baseline is None else baseline["score"] - score
    halves = halves_of(resampling, scored)
    spread = spread_of(
        resampling,
        scored,
        count=params.options.resamples,
        confidence=params.options.confidence,
        baseline=(baseline or {}).get("resampled"),
    )
    findings = _findings(params, score, drop, baseline)
    report = {
        "variant": params.variant or "pytorch",
        "provider": "" if params.target is None else params.target.name,
        "metric": params.metric.target,
        "score": score,
        "score_interval": spread.score,
        "baseline_score": None if baseline is None else baseline["score"],
        "drop": drop,
        "drop_interval": spread.drop,
        "halves": halves,
        "half_drops": _half_drops(baseline, halves),
        "confidence": params.options.confidence,
        "resampled": spread.about,
        "min": params.options.min,
        "max_drop": params.options.max_drop,
        "passed": not findings,
        "samples": sum(sizes),
        "batches": len(labels),
    }
    write_report(context.output("report"), report)
    shown = ("score", "score_interval", "baseline_score", "drop", "drop_interval", "samples")
    return Outcome(
        metrics={name: report[name] for name in shown},
        findings=findings,
        notes=_doubts(params, score, drop, spread),
    )


def _half_drops(
    baseline: Mapping[str, Any] | None, halves: Sequence[float] | None
) -> list[float] | None:
    """Return how far the even and the odd samples' scores are below the baseline's; None if either has no halves."""
    theirs = (baseline or {}).get("halves")
    if halves is None or theirs is None:
        return None
    return [their - own for their, own in zip(theirs, halves, strict=True)]


def _doubts(
    params: EvaluateParams, score: float, drop: float | None, spread: Spread
) -> tuple[str, ...]:
    """Verdicts that other data of the same kind could turn round."""
    who = f"variant '{params.variant}'" if params.variant else "the reference"
    percent = f"{100 * params.options.confidence:.6g} %"
    found = []
    for name, bound, value, bounds in (
        ("score", params.options.min, score, spread.score),
        ("drop", params.options.max_drop, drop, spread.drop),
    ):
        if bound is None or value is None or not bounds:
            continue
        low, high = bounds  # a score passes at its bound, and so does a drop
        if low < bound <= high if name == "score" else low <= bound < high:
            found.append(
                f"{who}: the {name} {value:.6g} is within chance of its bound {bound:g} "
                f"({percent} interval {low:.6g} to {high:.6g}): evaluate on more data"
            )
    if "failure" in spread.about:
        found.append(f"{who}: no interval of the score: {spread.about['failure']}")
    return tuple(found)


def _torch_predictor(context: StepContext) -> Callable[[Feeds], dict[str, np.ndarray]]:
    params: EvaluateParams = context.params
    assert params.model is not None
    make_torch_deterministic()
    return load_original(
        context, params.model, params.inputs, params.outputs, outputs_of_file(context)
    )


def _runtime_predictor(context: StepContext) -> Callable[[Feeds], dict[str, np.ndarray]]:
    params: EvaluateParams = context.params
    assert params.target is not None
    settings = params.session.judged_anywhere()
    session = open_on(context, context.input("model"), params.target, settings).session
    return lambda feeds: run_session(session, feeds, where=context.where)


def _baseline(context: StepContext) -> dict[str, Any] | None:
    """The reference's report; None where the reference itself is scored."""
    if "baseline" not in context.input_names:
        return None
    found: dict[str, Any] = json.loads(
        (context.input("baseline") / REPORT_FILE).read_text("utf-8")
    )
    return found


def _findings(
    params: EvaluateParams,
    score: float,
    drop: float | None,
    baseline: Mapping[str, Any] | None,
) -> tuple[Finding, ...]:
    least, most = params.options.min, params.options.max_drop
    where = f"variant '{params.variant}'" if params.variant else "the reference"
    findings = []
    if least is not None and score < least - _ROUNDING:
        findings.append(
            Finding(
                f"{params.metric.target} is {score:.6g}; expected at least {least:g}",
                where,
                "see whether the reference itself reaches it; else lower `evaluate: {min: ...}`"
                if params.options.of == "model"
                else f"{_PIPELINE_FIX}, or lower `evaluate: {{min: ...}}`",
            )
        )
    if most is not None and baseline is not None and drop is not None and drop > most + _ROUNDING:
        findings.append(
            Finding(
                f"{params.metric.target} is {score:.6g}, {drop:.6g} below the reference's "
                f"{baseline['score']:.6g}; expected at most {most:g} below",
                where,
                either([*_attempts(params), "raise `evaluate: {max_drop: ...}`"]),
            )
        )
    return tuple(findings)


def _attempts(params: EvaluateParams) -> list[str]:
    """Return what to try with a variant that scores too low."""
    if params.options.of == "pipeline":
        return [_PIPELINE_FIX]
    calibrates = "calibration_method" in params.mode_options
    more = ["calibrate with more samples"] if calibrates else []
    return more + attempts_of(params.precision, params.mode_options)


def _entrypoints(params: EvaluateParams) -> tuple[Entrypoint, ...]:
    model = () if params.model is None else (params.model,)
    plugin = () if params.target is None else params.target.entrypoints
    return (*model, params.data, params.metric, *plugin)


KIND = StepKind(
    name="evaluate",
    version=9,
    params=EvaluateParams,
    inputs=("model?", "baseline?", "target?", "config?"),
    outputs={"report": "report"},
    toolchain=("torch", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=_entrypoints,
)
