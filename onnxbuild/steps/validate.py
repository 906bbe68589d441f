"""Compare a variant's outputs with the reference's at every reference point; breaches fail the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import DummyInput, Precision
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext, StepKind
from onnxbuild.core.target import Target, TargetGates
from onnxbuild.onnxkit.accuracy.judged_outputs import (
    ThresholdRows,
    judge_outputs,
    threshold_findings,
    threshold_note,
    threshold_report,
)
from onnxbuild.onnxkit.accuracy.output_parts import (
    OutputParts,
    part_findings,
    part_metrics,
    part_report,
)
from onnxbuild.onnxkit.accuracy.point_reports import (
    JudgedPoint,
    dummies_fix,
    empty_findings,
    findings_of,
    is_real,
    noise_notes,
    only_real_decide,
    pooled,
    report_of,
    rounding_notes,
    without_noise,
)
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of
from onnxbuild.onnxkit.accuracy.validation_fixes import (
    CONVERTER_FAULT,
    Fix,
    VariantFixes,
    differs_before,
    fixes_of_section,
    noisy_findings,
    wrong_outputs,
)
from onnxbuild.onnxkit.accuracy.verdict import Judgement
from onnxbuild.onnxkit.calibrate.ranges import RANGES_FILE
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_files import UNUSUAL, ReferencePoint, read_reference
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.providers.open_on_target import (
    NotOnTargetError,
    absence,
    environment_note,
    open_on,
    skipped,
)
from onnxbuild.onnxkit.providers.placement import placement_findings
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.decoding import run_in_place
from onnxbuild.onnxkit.sessions.open import first_line, open_session, session_errors
from onnxbuild.onnxkit.sessions.run import fit_feeds
from onnxbuild.onnxkit.sessions.settings import SessionSettings, read_settings

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

__all__ = ["KIND", "ValidateOptions", "ValidateParams", "VariantTolerances", "run"]

_POOR_COSINE, _CLEAN_COSINE = 0.95, 0.9999
"""Below the former a node that makes most of the error is worth a line, though all gates may pass;
above the latter a point shows too little of it."""


@dataclass(frozen=True)
class ValidateOptions:
    """Tolerances by precision; a variant's own `validate` comes first."""


@dataclass(frozen=True, slots=True)
class ValidateParams:
    """Parameters of a comparison.

    Attributes:
        tolerances: In force, all defaults filled in.
        target: Where the model must run.
        gates: How much of it must.
        session: How the variant's session runs it, where no input `session` says so.
        excluded: What the variant's `nodes_to_exclude` names.
        section: The key of the recipe that asks for this model, where it is no variant's own.
        options: Names of the options of the variant's mode; a fix names none that it lacks.
        owner: Variant whose own `validate` has tolerances; empty where there are only those of its precision.
        level: `optimize.level` of the variant; empty where it has none.
        scored: The variant's score on real data must keep to a bound, too.
        in_place: The recipe's inputs, if its state is updated in place: then each point is run with it in buffers.
    """

    variant: str
    precision: Precision
    tolerances: VariantTolerances
    target: Target
    gates: TargetGates
    session: SessionSettings = field(default_factory=SessionSettings)
    excluded: tuple[str, ...] = ()
    section: str = ""
    options: tuple[str, ...] = ()
    owner: str = ""
    level: str = ""
    scored: bool = False
    in_place: tuple[DummyInput, ...] = field(default=(), metadata={"sparse": True})


def run(context: StepContext) -> Outcome:
    """Write report.json; breaches are findings, and outputs of which no value is compared, or whose error is as large as they are. A target that is not there is skipped.

    Points of noise only warn of quantized variants on which real data decide (see `only_real_decide`); sizes, dtypes
    and NaN count at all points. Where `calibration` is given, the fix says if it saw other values than the dummies.

    Where `exact`, the fp32 model, is given and the variant is far from the reference, the breaches' fix, or a
    note, names the node that costs more than all others together, if there is one.

    Raises:
        StepError: The target refuses the model, or a tolerance names an output that is not there.
    """
    params: ValidateParams = context.params
    if reason := absence(context):
        return skipped(context, params.target, reason)
    subject = f"variant '{params.variant}'"
    found = "session" in context.input_names
    settings = read_settings(context.input("session")) if found else params.session
    try:
        opened = open_on(context, context.input("model"), params.target, settings.judged())
    except NotOnTargetError as error:
        return _not_on_target(context, subject, str(error))
    rows: list[ThresholdRows] = []
    parts = OutputParts()
    judged = [
        (point.name, point.sizes, _judge_point(opened.session, point, context, rows, parts))
        for point in _points(context)
    ]
    judged = pooled(judged, lambda name: bounds_of(params.tolerances, name).equal_min)
    decisive = judged
    if only_real_decide(judged, params.precision, scored=params.scored):
        decisive = without_noise(judged)
    dominant = _dominant(context, decisive)
    fix = _fix_of(context, decisive, dominant)
    findings = findings_of(decisive, subject, fix)
    if findings and "calibration" in context.input_names:
        findings = tuple(map(_dummies_fix(context), findings))
    findings += noisy_findings(judged, params.tolerances, subject, fix)
    lost = parts.lost(decisive)
    findings += part_findings(lost, subject, fix)
    findings += threshold_findings(rows, subject)
    empty = empty_findings(judged, subject)
    excused = threshold_note(rows, subject)
    notes = tuple(filter(None, (excused, "" if findings else dominant)))
    notes += rounding_notes(judged, subject)
    notes += noise_notes(judged, decisive, subject) if decisive is not judged else ()
    if params.section:  # what noise gives a pipeline may well be empty: no box, no word
        notes += tuple(f"{each.where}: {each.what}" for each in empty)
    else:
        findings += empty
    if opened.placement is not None:
        findings += placement_findings(opened.placement, params.target, params.gates, subject)
    report = {
        "variant": params.variant,
        "precision": params.precision,
        "provider": params.target.name,
        **environment_note(context),
        "placement": opened.placement and opened.placement.to_json(params.target),
        "tolerances": to_json(params.tolerances),
        **report_of(judged, findings),
        **part_report(lost),
        **threshold_report(rows),
    }
    report["metrics"] = part_metrics(lost, report["metrics"])
    write_report(context.output("report"), report)
    return Outcome(report["metrics"], findings, notes)


def _points(context: StepContext) -> Iterator[ReferencePoint]:
    """The reference's points; of a model of full precision, also those at values that dummies never have."""
    params: ValidateParams = context.params
    reference = context.input("reference")
    yield from read_reference(reference)
    if params.precision == "fp32" and (reference / UNUSUAL).is_dir():
        yield from read_reference(reference / UNUSUAL)


def _dominant(context: StepContext, judged: Sequence[JudgedPoint]) -> str:
    """One line on the node that dominates, if the outputs are far from the reference's; or empty.

    It is looked for at the example's sizes, which are neither single tokens nor the largest; where
    nothing is lost there, at the smallest point that is far.
    """
    from onnxbuild.onnxkit.accuracy.isolated_node_error import find_dominant_node

    params: ValidateParams = context.params
    cosines = {name: _least_cosine(outputs.values()) for name, _, outputs in judged}
    far = [
        name
        for name, _, outputs in judged
        if cosines[name] < _POOR_COSINE or any(each.breaches for each in outputs.values())
    ]
    if "exact" not in context.input_names or not far:
        return ""
    example = judged[0][0]
    wanted = [example] if cosines[example] < _CLEAN_COSINE else far
    points = [each for each in read_reference(context.input("reference")) if each.name in wanted]
    feeds = min((each.feeds for each in points), key=_elements)
    exact, model = context.input("exact"), context.input("model")
    found = find_dominant_node(exact, model, feeds, context.scratch)
    if found is None:
        return ""
    return found.note(params.variant, min(cosines.values()), params.excluded)


def _dummies_fix(context: StepContext) -> Callable[[Finding], Finding]:
    """Return what gives findings another fix where dummy inputs are beyond what calibration saw."""
    text = (context.input("calibration") / RANGES_FILE).read_text("utf-8")
    ranges = json.loads(text)
    points = read_reference(context.input("reference"))
    noise = (point.feeds for point in points if not is_real(point.name))
    return dummies_fix(noise, {**ranges["ranges"], **ranges["seen"]})


def _fix_of(context: StepContext, judged: Sequence[JudgedPoint], dominant: str) -> Fix:
    """Return the fixes of breaches: the node that dominates the error, if there is one, comes before all else."""
    params: ValidateParams = context.params
    if dominant:
        return lambda *_: dominant
    if params.section:
        return fixes_of_section(params.section)
    return VariantFixes(
        params.precision,
        params.options,
        params.tolerances,
        params.owner,
        wrong=wrong_outputs(judged, params.precision),
        before=_before(context, judged),
        level=params.level,
    )


def _before(context: StepContext, judged: Sequence[JudgedPoint]) -> str:
    """The fix where the model fails as it was made, before any optimization; or empty."""
    params: ValidateParams = context.params
    failing = {name for name, _, outputs in judged if any(e.breaches for e in outputs.values())}
    if "source" not in context.input_names or not failing:
        return ""
    phase("comparing the model as it was made")
    settings = SessionSettings(graph_optimization="disable").judged()
    source = open_session(context.input("source"), settings=settings, where=context.where)
    for point in read_reference(context.input("reference")):
        if point.name in failing:
            found = _judge_point(source, point, context, [], OutputParts())
            if any(each.breaches for each in found.values()):
                config = json.loads((context.input("config") / REPORT_FILE).read_text("utf-8"))
                address = f"{context.where.partition(':')[0]}:{params.variant}"
                return differs_before(config.get(CONVERTER_FAULT, ""), address)
    return ""


def _least_cosine(judgements: Iterable[Judgement]) -> float:
    """The worst of the outputs of floats; 1 where there is none."""
    compared = [each.comparison for each in judgements if each.comparison is not None]
    return min((each.cosine for each in compared if each.cosine is not None), default=1.0)


def _elements(feeds: Feeds) -> int:
    return sum(array.size for array in feeds.values())


def _not_on_target(context: StepContext, subject: str, what: str) -> Outcome:
    """None of the model runs there: a breach where the target is required, else reported."""
    params: ValidateParams = context.params
    outcome = skipped(context, params.target, what)
    if params.gates.require == "none":
        return replace(outcome, notes=(f"{subject} is skipped on its target: {what}",))
    fix = "take the target out of `providers`, or give it a variant that it has kernels for"
    return replace(outcome, findings=(Finding(what, subject, fix),))


def _judge_point(
    session: onnxruntime.InferenceSession,
    point: ReferencePoint,
    context: StepContext,
    rows: list[ThresholdRows],
    parts: OutputParts,
) -> dict[str, Judgement]:
    """Judge each output of a point; its rows on a threshold are added to `rows`, its outputs to `parts`."""
    params: ValidateParams = context.params
    names = [value.name for value in session.get_outputs()]
    wanted = [name for name in point.outputs if name in names]
    missing = f"the model has no such output; it has {', '.join(names)}"
    found: dict[str, np.ndarray] = {}
    try:
        if params.in_place:
            found = run_in_place(session, point.feeds, params.in_place)
        elif wanted:
            outputs = session.run(wanted, fit_feeds(session, point.feeds))
            found = dict(zip(wanted, outputs, strict=True))
    except StepError as error:
        missing = error.what
    except session_errors() as error:
        missing = f"ONNX Runtime fails: {first_line(error)}"
    if params.precision == "fp16":  # keep_io_types: false
        found = {
            name: array.astype(point.outputs[name].dtype) if array.dtype == "float16" else array
            for name, array in found.items()
        }
    return judge_outputs(
        point,
        found,
        params.tolerances,
        missing=missing,
        where=context.where,
        rows=rows,
        parts=parts,
    )


KIND = StepKind(
    name="validate",
    version=11,
    params=ValidateParams,
    inputs=(
        "model",
        "reference",
        "exact?",
        "calibration?",
        "session?",
        "target?",
        "source?",
        "config?",
    ),
    outputs={"report": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    entrypoints=lambda params: params.target.entrypoints,
)
