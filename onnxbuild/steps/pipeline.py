"""Run a pipeline on the components' ONNX models, and compare its outputs with PyTorch's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onnxbuild.core.errors import StepError, listed
from onnxbuild.core.params import option, to_json
from onnxbuild.core.recipe import DummyInput, Entrypoint, Precision
from onnxbuild.core.step import Finding, Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.accuracy.divergence import TokenDivergence, too_far
from onnxbuild.onnxkit.accuracy.point_reports import metrics_of_all
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of
from onnxbuild.onnxkit.accuracy.user_metric import UserMetric
from onnxbuild.onnxkit.accuracy.verdict import judge
from onnxbuild.onnxkit.data.recorded_calls import CALLS
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.loaders import decoding
from onnxbuild.onnxkit.packages.package_run import verdict_on
from onnxbuild.onnxkit.pipelines.built_in import (
    CTC,
    TOKENS,
    SoundOptions,
    forced_logits,
    numbers_of_rows,
    own_code,
)
from onnxbuild.onnxkit.pipelines.calls import EXACT as EXACT_MODELS
from onnxbuild.onnxkit.pipelines.calls import (
    Caller,
    PipelineRun,
    by_name,
    parts_of,
    runtime_callers,
)
from onnxbuild.onnxkit.pipelines.layout import calls_in_order
from onnxbuild.onnxkit.pipelines.parts import PipelineParts, read_values
from onnxbuild.onnxkit.providers.open_on_target import NotOnTargetError, absence, skipped
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import numpy as np

    from onnxbuild.onnxkit.pipelines.parts import Arrays

JudgedBy = Literal["outputs", "metric", "calls", "tokens"]
EXACT = ("fp32", "fp16")
"""Precisions whose outputs must be PyTorch's."""


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """A callable over all components, which PyTorch and the models must agree on."""

    variants: dict[str, dict[str, str]] = field(
        default_factory=dict,
        metadata={
            "help": "variant of the pipeline -> component -> its variant; a component that is not named is unquantized. "
            "Left out: one for each name that a component's variants have"
        },
    )
    tolerances: dict[str, VariantTolerances] = field(
        default_factory=dict,
        metadata={
            "help": "variant of the pipeline -> bounds on its outputs. Left out: those of its fewest bits; and one of fewer than 16 is "
            "judged by `metric`, or by its components on the inputs of PyTorch's calls"
        },
    )
    count: int = option(8, help="how many of the samples are run", minimum=1)
    distinct: int = option(
        8,
        help="different integers that PyTorch must give at the least, where an output is of integers: tokens that are all "
        "the same would hide every fault",
        minimum=1,
    )
    min: float | None = option(
        None, help="least score by `metric` of a variant of fewer bits than 16"
    )
    start: tuple[int, ...] = option(
        (),
        help="of `greedy` and `sample`: ids that the decoder begins with, such as decoder_start_token_id",
        minimum=0,
    )
    tokens: int = option(24, help="of `greedy` and `sample`: how many tokens follow", minimum=1)
    suppress_tokens: tuple[int, ...] = option(
        (), help="of `greedy` and `sample`: ids that never follow", minimum=0
    )
    begin_suppress_tokens: tuple[int, ...] = option(
        (), help="of `greedy` and `sample`: ids that do not follow first", minimum=0
    )
    image_token: int | None = option(
        None,
        help="of `greedy` and `sample` with images: id in whose places in a row's ids features of images are; 0 pads rows",
        minimum=1,
    )
    temperature: float = option(
        1.0, help="of `sample`: divides the logits before a token is drawn", minimum=0
    )
    top_p: float = option(
        1.0,
        help="of `sample`: share of the probability that the tokens to draw from have, the most likely first",
        minimum=0,
        maximum=1,
    )
    seed: int = option(0, help="of `sample`: seed of the drawing", minimum=0)
    blank: int = option(0, help="of `ctc`: id of what stands between tokens", minimum=0)
    receptive_field: int = option(
        1, help="of `ctc`: how many elements of a row one frame is made of", minimum=1
    )
    stride: int = option(
        1, help="of `ctc`: how many elements of a row later the next frame begins", minimum=1
    )
    sound: SoundOptions | None = option(
        None, help="of a built-in `run`: how samples in .wav files become what the model takes"
    )
    tokenizer: tuple[str, ...] = field(
        default=(),
        compare=False,  # the files are in Recipe.entrypoints, whatever they are relative to
        metadata={
            "help": "of a built-in `run`: tokenizer.json and generation_config.json, or for `ctc` vocab.json, relative to this "
            "file: they go into the package, whose run.py shows tokens as text"
        },
    )
    batches: tuple[int, ...] = option(
        (1, 2),
        help="of a built-in `run`: sizes of batches to try; rows of different lengths are padded, where a mask says so",
        minimum=1,
    )
    max_kl: float | None = option(
        None,
        help="of a built-in `run`: most mean KL divergence, in nats, of a variant of fewer bits than 16 from the fp32 models, on "
        "PyTorch's own tokens or, by `ctc`, of each frame",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """A component: its inputs, the tolerances of its variant, and how its session runs it."""

    name: str
    inputs: tuple[DummyInput, ...]
    tolerances: VariantTolerances
    session: SessionSettings


@dataclass(frozen=True, slots=True)
class PipelineParams:
    """Parameters of the comparison.

    Attributes:
        components: `NAME@COMPONENT:VARIANT` of each part, for fixes.
        judged_by: What must fit PyTorch's: the pipeline's outputs; the score by `metric`; or the components' outputs on the
            inputs of PyTorch's calls; or, of decoding, the distributions of next tokens or of frames, by `max_kl`. Tokens that
            a variant of few bits chooses itself differ from the first near tie on.
        run: `run(parts, sample)`.
        metric: (outputs of each sample, PyTorch's of each) -> float, greater is better; None for tolerances.
        min: Its least value.
        distinct, max_kl: As in PipelineOptions.
    """

    variant: str
    precision: Precision
    parts: tuple[JudgedPart, ...]
    components: tuple[str, ...]
    judged_by: JudgedBy
    run: Entrypoint
    metric: Entrypoint | None
    min: float | None
    distinct: int
    tolerances: VariantTolerances
    target: Target
    max_kl: float | None = field(default=None, metadata={"sparse": True})


def run(context: StepContext) -> Outcome:
    """Write report.json; an output out of its tolerance, or a score that is too low, is a finding.

    Raises:
        StepError: The callable or ONNX Runtime fails on a sample, or the callable returns other names than with PyTorch.
    """
    params: PipelineParams = context.params
    if reason := absence(context):
        return skipped(context, params.target, reason)
    try:
        callers = runtime_callers(
            context, {each.name: each.session for each in params.parts}, params.target
        )
    except NotOnTargetError as error:
        return skipped(context, params.target, str(error))
    reference = context.input("reference")
    parts = parts_of({each.name: each.inputs for each in params.parts}, by_name(callers))
    pipeline = PipelineRun(context, params.run)
    found = {
        f"{SAMPLE}{number}": pipeline.outputs_of(parts, sample, number)
        for number, sample in enumerate(read_values(reference))
    }
    subject = f"pipeline '{params.variant}'"
    fix = "mend the component that differs first"
    if params.judged_by == "outputs":
        fix += f", or allow more: `pipeline: {{tolerances: {{{params.variant}: ...}}}}`"
    _check_names(params, found, reference, pipeline.place)
    report, findings = verdict_on(
        found, reference, params.tolerances, subject=subject, fix=fix, where=context.where
    )
    metrics = dict(report["metrics"])
    about: dict[str, Any] = {
        "variant": params.variant,
        "provider": params.target.name,
        "samples": len(found),
        "judged_by": params.judged_by,
    }
    if params.judged_by == "tokens":
        metrics, findings, about["by_prompt"] = _diverged(context, parts, subject)
    if params.judged_by == "metric":
        metrics["score"], findings = _scored(context, found, subject)
    elif params.judged_by == "calls":
        metrics, findings = _on_calls(context, callers, subject)
    if findings:
        findings = (*findings, _first_difference(context, callers, subject))
    findings = (*findings, *_blind(context, subject))
    report |= {"passed": not findings, "findings": to_json(list(findings)), "metrics": metrics}
    write_report(context.output("report"), {**about, **report})
    return Outcome(metrics, findings)


def _check_names(
    params: PipelineParams, found: Mapping[str, Arrays], reference: Path, place: str
) -> None:
    for point in read_reference(reference):
        if (names := set(found[point.name])) != set(point.outputs):
            raise StepError(
                f"{params.run.target} returned {listed(sorted(names), 'and')} for {point.name}; with PyTorch it was "
                f"{listed(sorted(point.outputs), 'and')}",
                where=place,
                fix="let it return the same names, whatever runs the components",
            )


def _scored(
    context: StepContext, found: Mapping[str, Mapping[str, np.ndarray]], subject: str
) -> tuple[float, tuple[Finding, ...]]:
    params: PipelineParams = context.params
    assert params.metric is not None
    assert params.min is not None
    expected = [each.outputs for each in read_reference(context.input("reference"))]
    score = UserMetric(context, params.metric).score(list(found.values()), expected)
    if score >= params.min:
        return score, ()
    what = f"{params.metric.target} is {score:.6g}; expected at least {params.min:g}"
    fix = "keep a component in fp32, or lower `pipeline: {min: ...}`"
    return score, (Finding(what, subject, fix),)


def _diverged(
    context: StepContext, parts: PipelineParts, subject: str
) -> tuple[dict[str, Any], tuple[Finding, ...], list[dict[str, Any]]]:
    """Compare distributions with those of the fp32 models: of the next token, on PyTorch's tokens, each through its own state; or of frames.

    Returns: The figures, findings, and the figures by row of the samples.
    """
    params: PipelineParams = context.params
    sessions = {each.name: each.session for each in params.parts}
    callers = runtime_callers(context, sessions, params.target, EXACT_MODELS)
    exact = parts_of({each.name: each.inputs for each in params.parts}, by_name(callers))
    found = TokenDivergence()
    reference = context.input("reference")
    samples = read_values(reference)
    points = zip(samples, numbers_of_rows(samples), read_reference(reference), strict=True)
    for sample, rows, point in points:
        if params.run.target == CTC:
            args: Mapping[str, Any] = params.run.args
            own = {name: value for name, value in args.items() if name != "blank"}
            pairs = zip(
                *(decoding.frames(each, sample, **own) for each in (exact, parts)), strict=True
            )
            for row, pair in zip(rows, pairs, strict=True):
                likely = pair[0].argmax(-1)[:, None]
                found.add([[each] for each in pair], likely, [row] * len(likely))
            continue
        tokens = point.outputs[TOKENS]
        both = (forced_logits(params.run, each, sample, tokens) for each in (exact, parts))
        found.add(both, tokens, rows)
    metrics = found.metrics()
    if not (what := too_far(metrics["kl"], params.max_kl)):
        return metrics, (), found.by_prompt()
    fix = (
        "keep a component in fp32: `pipeline: {variants: ...}`, or raise `pipeline: {max_kl: ...}`"
    )
    return metrics, (Finding(what, subject, fix),), found.by_prompt()


def _on_calls(
    context: StepContext, callers: Mapping[str, Caller], subject: str
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Judge each component on the inputs of PyTorch's calls, by the tolerances of its variant."""
    params: PipelineParams = context.params
    metrics = []
    findings: tuple[Finding, ...] = ()
    for part, of in zip(params.parts, params.components, strict=True):
        folder = context.input("reference") / CALLS / part.name
        found = {
            each.name: callers[part.name](dict(each.feeds)) for each in read_reference(folder)
        }
        report, own = verdict_on(
            found,
            folder,
            part.tolerances,
            subject=f"{subject}, component '{part.name}'",
            fix=f"onnxbuild diagnose {of}",
            where=context.where,
        )
        findings += own
        metrics.append(report["metrics"])
    return metrics_of_all(metrics), findings


def _first_difference(
    context: StepContext, callers: Mapping[str, Caller], subject: str
) -> Finding:
    """Name the first call of PyTorch's whose outputs a component does not give on the same inputs."""
    params: PipelineParams = context.params
    own = {each.name: each for each in params.parts}
    calls = calls_in_order(context.input("reference"), list(own))
    for number, (name, point) in enumerate(calls):
        outputs = callers[name](dict(point.feeds))
        for output, expected in point.outputs.items():
            found = judge(expected, outputs[output], bounds_of(own[name].tolerances, output))
            if found.breaches:
                of = params.components[list(own).index(name)]
                return Finding(
                    f"component '{name}' differs first: on the inputs of PyTorch's call {number}, in output '{output}': "
                    f"{found.breaches[0][1]}",
                    subject,
                    f"onnxbuild diagnose {of}",
                )
    return Finding(
        "each component alone, on the inputs of PyTorch's calls, is within its own tolerances: differences add up, or the "
        "callable decides by values that nearly tie",
        subject,
        "hold the components to tighter tolerances: `validate`",
    )


def _blind(context: StepContext, subject: str) -> tuple[Finding, ...]:
    """Find that PyTorch gives too few different integers for equal ones to say anything."""
    params: PipelineParams = context.params
    values: dict[str, set[int]] = {}
    for point in read_reference(context.input("reference")):
        for name, array in point.outputs.items():
            if array.dtype.kind in "iu":
                values.setdefault(name, set()).update(array.ravel().tolist())
    return tuple(
        Finding(
            f"PyTorch gives {len(found)} different values of output '{name}', fewer than {params.distinct}: equal ones say "
            "nothing",
            subject,
            "yield more samples, take trained weights, or lower `pipeline: {distinct: ...}`",
        )
        for name, found in values.items()
        if len(found) < params.distinct
    )


def _entrypoints(params: PipelineParams) -> tuple[Entrypoint, ...]:
    metric = () if params.metric is None else (params.metric,)
    return (*own_code(params.run), *metric, *params.target.entrypoints)


KIND = StepKind(
    name="pipeline",
    version=2,
    params=PipelineParams,
    inputs=("model/*", "exact/*", "reference", "target?"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=_entrypoints,
)
