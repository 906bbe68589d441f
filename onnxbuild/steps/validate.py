"""Compare a variant's outputs with PyTorch's at every reference point; breaches fail the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.params import option, to_json
from onnxbuild.core.recipe import Precision
from onnxbuild.core.step import Finding, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.comparison import Comparison
from onnxbuild.onnxkit.reference_files import ReferencePoint, read_reference
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.running import fit_feeds
from onnxbuild.onnxkit.sessions import first_line, open_session, session_errors
from onnxbuild.onnxkit.verdict import Bounds, Judgement, judge

if TYPE_CHECKING:
    import onnxruntime

_FIXES: Mapping[str, str] = {
    "fp32": "write `optimize: {level: basic}`, or widen `validate: {fp32: {atol: ..., rtol: ...}}`",
    "fp16": "keep in fp32 what needs its range: `keep_fp32: auto` in the variant (or the nodes that "
    "you know of: `node_block_list: [...]`), or widen `validate: {fp16: {...}}`",
    "int8": "see that the variant keeps `per_channel: true`, leave its most sensitive nodes in fp32 "
    "(`nodes_to_exclude: [...]`), or lower `validate: {int8: {cosine_min: ...}}`",
    "int4": "write `bits: 8`, a smaller `block_size` or another `method`, leave sensitive nodes "
    "in fp32 (`nodes_to_exclude: [...]`), or lower `validate: {int4: {cosine_min: ...}}`",
}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may be from PyTorch's; bounds left out are not checked."""

    atol: float | None = option(None, help="|a-b| <= atol + rtol |b|, with b PyTorch's", minimum=0)
    rtol: float | None = option(None, help="see atol", minimum=0)
    cosine_min: float | None = option(
        None, help="least cosine similarity of the flattened outputs", minimum=-1, maximum=1
    )
    sqnr_db_min: float | None = option(None, help="least signal-to-noise ratio, in dB")


DEFAULT_TOLERANCES: Mapping[str, Tolerance] = {
    "fp32": Tolerance(atol=1e-5, rtol=1e-4),
    "fp16": Tolerance(atol=1e-2, rtol=1e-3),
    "int8": Tolerance(cosine_min=0.98),
    "int4": Tolerance(cosine_min=0.95),
}


@dataclass(frozen=True, slots=True)
class VariantTolerances(Tolerance):
    """A variant's tolerances, with exceptions by output."""

    outputs: dict[str, Tolerance] = field(
        default_factory=dict, metadata={"help": "tolerances for single outputs, by name"}
    )


@dataclass(frozen=True, slots=True)
class ValidateOptions:
    """Tolerances by precision; a variant's own `validate` comes first."""

    fp32: VariantTolerances | None = option(None, help="default: atol 1e-5, rtol 1e-4")
    fp16: VariantTolerances | None = option(None, help="default: atol 1e-2, rtol 1e-3")
    int8: VariantTolerances | None = option(None, help="default: cosine_min 0.98")
    int4: VariantTolerances | None = option(None, help="default: cosine_min 0.95")


@dataclass(frozen=True, slots=True)
class ValidateParams:
    """All that steers a comparison.

    Attributes:
        tolerances: In force, all defaults filled in.
        provider: Short name of the execution provider that must run the model.
        provider_options: Its options.
    """

    variant: str
    precision: Precision
    tolerances: VariantTolerances
    provider: str
    provider_options: dict[str, str]


def run(context: StepContext) -> Outcome:
    """Write report.json; breaches are findings.

    Raises:
        StepError: The provider does not load or refuses the model, or a tolerance names an output
            that is not there.
    """
    params: ValidateParams = context.params
    session = open_session(
        context.input("model"),
        provider=params.provider,
        options=params.provider_options,
        threads=1,
        where=context.where,
    )
    judged = [
        (point.name, point.sizes, _judge_point(session, point, context))
        for point in read_reference(context.input("reference"))
    ]
    findings = _findings(judged, params)
    metrics = _metrics(judged)
    report = {
        "variant": params.variant,
        "precision": params.precision,
        "provider": params.provider,
        "tolerances": to_json(params.tolerances),
        "passed": not findings,
        "findings": to_json(findings),
        "metrics": metrics,
        "points": [
            {
                "point": name,
                "sizes": dict(sizes),
                "passed": all(not each.breaches for each in outputs.values()),
                "outputs": {output: _show(each) for output, each in outputs.items()},
            }
            for name, sizes, outputs in judged
        ],
        "worst": _worst(judged),
    }
    write_report(context.output("report"), report)
    return Outcome(metrics, findings)


_Judged = tuple[str, Mapping[str, int], dict[str, Judgement]]
"""A point's name, its sizes, and what is said of each output."""


def _judge_point(
    session: onnxruntime.InferenceSession, point: ReferencePoint, context: StepContext
) -> dict[str, Judgement]:
    params: ValidateParams = context.params
    _check_tolerance_names(params, tuple(point.outputs), context.where)
    names = [value.name for value in session.get_outputs()]
    wanted = [name for name in point.outputs if name in names]
    failure = ""
    try:
        found = dict(
            zip(wanted, session.run(wanted, fit_feeds(session, point.feeds)), strict=True)
        )
    except session_errors() as error:
        failure, found = f"ONNX Runtime fails: {first_line(error)}", {}
    judged = {}
    for name, expected in point.outputs.items():
        if name in found:
            actual = found[name]
            if params.precision == "fp16" and actual.dtype == "float16":
                actual = actual.astype(expected.dtype)  # keep_io_types: false
            judged[name] = judge(expected, actual, _bounds(params.tolerances, name))
        else:
            what = failure or f"the model has no such output; it has {', '.join(names)}"
            judged[name] = Judgement(None, (("comparable", what, float("inf")),))
    return judged


def _bounds(tolerances: VariantTolerances, output: str) -> Bounds:
    """An output's own tolerance in place of the variant's, not on top of it."""
    own: Tolerance = tolerances.outputs.get(output, tolerances)
    return Bounds(own.atol, own.rtol, own.cosine_min, own.sqnr_db_min)


def _check_tolerance_names(params: ValidateParams, outputs: Sequence[str], where: str) -> None:
    for name in params.tolerances.outputs:
        if name not in outputs:
            raise StepError(
                f"tolerances are given for output '{name}'; the model has {', '.join(outputs)}",
                where=where,
                fix=did_you_mean(name, outputs) or f"take '{name}' out of `outputs`",
            )


def _findings(judged: Sequence[_Judged], params: ValidateParams) -> tuple[Finding, ...]:
    """One for each output and kind of breach, at its worst point; what can't be compared first."""
    worst: dict[tuple[str, str], tuple[float, str, str]] = {}
    count: dict[tuple[str, str], int] = {}
    for point, sizes, outputs in judged:
        shown = ", ".join(f"{axis}={size}" for axis, size in sizes.items())
        for output, each in outputs.items():
            for kind, what, excess in each.breaches:
                key = (output, kind)
                count[key] = count.get(key, 0) + 1
                if key not in worst or excess > worst[key][0]:
                    where = f"point '{point}'" + (f" ({shown})" if shown else "")
                    worst[key] = (excess, what, where)
    ordered = sorted(worst, key=lambda key: key[1] != "comparable")
    return tuple(
        Finding(
            what=worst[key][1] + _elsewhere(count[key] - 1, len(judged)),
            where=f"variant '{params.variant}', output '{key[0]}', {worst[key][2]}",
            fix=_FIXES[params.precision],
        )
        for key in ordered
    )


def _elsewhere(more: int, points: int) -> str:
    return f" (and at {more} more of {points} points)" if more else ""


def _metrics(judged: Sequence[_Judged]) -> dict[str, object]:
    """The worst of each measure over all points and outputs; None where nothing was measured."""
    found = [c for _, _, c in _comparisons(judged)]
    passed = sum(all(not each.breaches for each in outputs.values()) for _, _, outputs in judged)
    ratios = [c.sqnr_db for c in found if c.sqnr_db is not None]
    return {
        "max_abs": max((c.max_abs for c in found), default=None),
        "max_rel": max((c.max_rel for c in found), default=None),
        "mean_abs": max((c.mean_abs for c in found), default=None),
        "cosine_min": min((c.cosine for c in found), default=None),
        "sqnr_db_min": min(ratios, default=None),
        "points": len(judged),
        "points_passed": passed,
    }


def _worst(judged: Sequence[_Judged]) -> dict[str, Any] | None:
    """Where the largest absolute difference is."""
    found = _comparisons(judged)
    if not found:
        return None
    point, output, comparison = max(found, key=lambda each: each[2].max_abs)
    return {"point": point, "output": output, **comparison.to_json()}


def _comparisons(judged: Sequence[_Judged]) -> list[tuple[str, str, Comparison]]:
    return [
        (point, output, each.comparison)
        for point, _, outputs in judged
        for output, each in outputs.items()
        if each.comparison is not None
    ]


def _show(judgement: Judgement) -> dict[str, object]:
    measures = {} if judgement.comparison is None else judgement.comparison.to_json()
    return {**measures, "breaches": [what for _, what, _ in judgement.breaches]}


KIND = StepKind(
    name="validate",
    version=3,
    params=ValidateParams,
    inputs=("model", "reference"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    section="validate",
    options=ValidateOptions,
    host_bound=True,
)
