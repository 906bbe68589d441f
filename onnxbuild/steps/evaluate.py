"""Score the reference or a variant with the user's own metric on the user's own data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.export.torch_module import make_torch_deterministic
from onnxbuild.onnxkit.pipelines.built_in import own_code
from onnxbuild.onnxkit.pipelines.calls import (
    PipelineRun,
    RunPipeline,
    by_name,
    parts_of,
    runtime_callers,
)
from onnxbuild.onnxkit.pipelines.parts import read_values
from onnxbuild.onnxkit.providers.open_on_target import NotOnTargetError, absence, open_on, skipped
from onnxbuild.onnxkit.ready_onnx.original_model import load_original, outputs_of_file
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import numpy as np

    from onnxbuild.onnxkit.accuracy.user_metric import Score, Spread

_ROUNDING = 1e-9
"""0.99 - 0.98 is more than 0.01 in binary; a drop of exactly the bound passes."""


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """Your own metric, and the score that variants must reach."""

    of: Literal["model", "pipeline", "whole"] = option(
        "model",
        help="`model`: the data are the model's inputs; `pipeline`: they are raw inputs, and the pipelines of "
        "`processing` are scored instead of the variants; `whole`, of a component: the recipe's `pipeline` is scored on its "
        "samples, each variant in turn in its place and all other components in fp32, by its `metric` if none is written here",
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
        200, help="bootstrap resamples of the data for the intervals; 0: no intervals", minimum=0
    )


_PIPELINE_FIX = "compare `processing` with your own code, operation by operation"


@dataclass(frozen=True, slots=True)
class EvaluateParams:
    """Parameters of an evaluation.

    Attributes:
        data: A callable that yields (feeds, labels) for each batch, or returns one such pair of all samples; of a whole, its
            samples, which the input `reference` has.
        metric: A callable: (outputs, labels) -> float, greater is better; see `UserMetric`.
        model: What the user's callable returns is scored, as PyTorch; None scores the `model` artifact.
        target: Where that runs; None for PyTorch.
        session: How the variant's session runs it.
        precision: The variant's; empty for the reference and for pipelines.
        mode_options: Names of the options of the variant's mode; a fix names none that it lacks.
        whole: The pipeline that the inputs `model/COMPONENT` are run in, and whose outputs are scored; None for the model's
            own outputs. What PyTorch gives are the labels, and the outputs that scores are compared with.
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
    whole: RunPipeline | None = field(default=None, metadata={"sparse": True})


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
        found = list(_predictions(context) if params.whole is None else _of_whole(context))
    except NotOnTargetError as error:
        assert params.target is not None
        return skipped(context, params.target, str(error))
    outputs = [each for each, _, _ in found]
    labels = [truth for _, truth, _ in found]
    sizes = [size for _, _, size in found]
    if not labels:
        raise StepError(
            f"{params.data.target} yields nothing to evaluate on",
            where=context.where,
            fix="yield at least one (feeds, labels)",
        )
    scored = UserMetric(context, params.metric).score
    resampling = Resampling(outputs, labels, sizes)
    score = scored(*resampling.whole())
    baseline = (
        _baseline(context) if params.whole is None else _of_equals(labels, sizes, scored, params)
    )
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


def _predictions(context: StepContext) -> Iterator[tuple[dict[str, np.ndarray], object, int]]:
    """Yield (outputs, labels, number of samples) of each batch."""
    params: EvaluateParams = context.params
    predict = _torch_predictor(context) if params.target is None else _runtime_predictor(context)
    for feeds, truth in labelled_batches(context, params.data, params.inputs, params.axes):
        outputs = predict(feeds)
        made = [int(each.shape[0]) for each in outputs.values() if each.ndim]
        yield outputs, truth, rows_of(feeds, params.inputs, made)


def _of_whole(context: StepContext) -> Iterator[tuple[dict[str, np.ndarray], object, int]]:
    """Yield (outputs of the pipeline, PyTorch's, 1) of each sample."""
    params: EvaluateParams = context.params
    assert params.whole is not None
    assert params.target is not None
    reference, parts = context.input("reference"), params.whole.parts
    callers = runtime_callers(context, {each.name: each.session for each in parts}, params.target)
    pipeline = PipelineRun(context, params.whole.run)
    called = parts_of({each.name: each.inputs for each in parts}, by_name(callers))
    points = zip(read_values(reference), read_reference(reference), strict=True)
    for number, (sample, expected) in enumerate(points):
        yield pipeline.outputs_of(called, sample, number), dict(expected.outputs), 1


def _of_equals(
    labels: list[Any], sizes: Sequence[int], scored: Score, params: EvaluateParams
) -> dict[str, Any]:
    """Return what a report of PyTorch's own outputs has."""
    from onnxbuild.onnxkit.accuracy.user_metric import Resampling, halves_of, spread_of

    equal, options = Resampling(labels, labels, sizes), params.options
    spread = spread_of(
        equal, scored, count=options.resamples, confidence=options.confidence, baseline=None
    )
    return {
        "score": scored(*equal.whole()),
        "halves": halves_of(equal, scored),
        "resampled": spread.about,
    }


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
    params: EvaluateParams, score: float, drop: float | None, baseline: Mapping[str, Any] | None
) -> tuple[Finding, ...]:
    least, most = params.options.min, params.options.max_drop
    where = f"variant '{params.variant}'" if params.variant else "the reference"
    findings = []
    if least is not None and score < least - _ROUNDING:
        findings.append(
            Finding(
                f"{params.metric.target} is {score:.6g}; expected at least {least:g}",
                where,
                f"{_PIPELINE_FIX}, or lower `evaluate: {{min: ...}}`"
                if params.options.of == "pipeline"
                else "see whether the reference itself reaches it; else lower `evaluate: {min: ...}`",
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
    given = (params.data,) if params.whole is None else own_code(params.whole.run)
    return (*model, *given, params.metric, *plugin)


KIND = StepKind(
    name="evaluate",
    version=9,
    params=EvaluateParams,
    inputs=("model?", "baseline?", "target?", "config?", "model/*", "reference?"),
    outputs={"report": "report"},
    toolchain=("torch", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=_entrypoints,
)
