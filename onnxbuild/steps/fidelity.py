"""Measure how near a variant's outputs are to the fp32 model's, over the user's data."""

import dataclasses
from dataclasses import dataclass, field

from onnxbuild.core.errors import NotApplicableError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.accuracy.output_parts import OutputParts, part_findings, part_report
from onnxbuild.onnxkit.accuracy.sample_outputs import (
    compare_samples,
    data_of,
    projection_of,
    read_vectors,
    sample_vectors,
    write_errors,
)
from onnxbuild.onnxkit.data.feed_checks import NotFiniteError
from onnxbuild.onnxkit.providers.open_on_target import NotOnTargetError, absence, open_on, skipped
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.settings import SessionSettings


@dataclass(frozen=True, slots=True)
class FidelityOptions:
    """Real data on which the accuracy of variants is reported."""

    samples: int = option(0, help="items of the data that are used; 0: all", minimum=0)


@dataclass(frozen=True, slots=True)
class FidelityParams:
    """Parameters of a measurement.

    Attributes:
        data: A callable that yields feeds: input name -> array.
        project: A callable: (outputs, feeds) -> (samples, ...); None takes all outputs.
        inputs: What the recipe declares.
        samples: Items of the data that are used; 0 for all.
        target: Where the model runs.
        session: How the variant's session runs it.
        variant: Whose parts of outputs must not be lost; empty for a trial, which its search judges.
    """

    data: Entrypoint
    project: Entrypoint | None
    inputs: tuple[DummyInput, ...]
    samples: int
    target: Target
    session: SessionSettings = field(default_factory=SessionSettings)
    variant: str = ""


def run(context: StepContext) -> Outcome:
    """Write report.json (cosine_mean, cosine_min, the worst sample, sqnr_db, lost parts of outputs) and each sample's.

    Raises:
        StepError: The data is not what it was for the baseline; see `sample_vectors`.
        NotApplicableError: The model gives a value that is not finite.
    """
    params: FidelityParams = context.params
    if reason := absence(context):
        return skipped(context, params.target, reason)
    settings = params.session.judged_anywhere()
    try:
        session = open_on(context, context.input("model"), params.target, settings).session
    except NotOnTargetError as error:
        return skipped(context, params.target, str(error))
    vectors = sample_vectors(
        session,
        data_of(context, params.data, params.inputs, params.samples),
        project=projection_of(context, params.project),
        target=params.project.target if params.project else "",
        where=context.where,
    )
    parts = OutputParts()
    baseline = read_vectors(context.input("baseline"))
    try:
        errors = compare_samples(baseline, vectors, context.where, parts)
    except NotFiniteError as error:  # the baseline's are finite, on the same data
        raise NotApplicableError(error.what, where=error.where, fix=error.fix) from error
    metrics = dataclasses.asdict(errors.fidelity())
    lost = parts.lost()
    write_report(context.output("report"), {**metrics, **part_report(lost)})
    write_errors(context.output("report"), errors)
    subject = f"variant '{params.variant}' on `fidelity.data`"
    findings = part_findings(lost if params.variant else (), subject, lambda *_: _FIX)
    return Outcome(metrics, findings)


_FIX = (
    "leave the nodes that make it in fp32 (`onnxbuild diagnose RECIPE:VARIANT` finds them), or return the part as an "
    "output of its own"
)


KIND = StepKind(
    name="fidelity",
    version=7,
    params=FidelityParams,
    inputs=("model", "baseline", "target?"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (
        params.data,
        *((params.project,) if params.project else ()),
        *params.target.entrypoints,
    ),
)
