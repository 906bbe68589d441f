"""Compare a TorchScript, torch.export or AOTInductor program with PyTorch at every reference point."""

from collections.abc import Callable
from dataclasses import dataclass

from onnxbuild.core.params import to_json
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.judged_outputs import rounding_of
from onnxbuild.onnxkit.accuracy.point_reports import (
    empty_findings,
    findings_of,
    pooled,
    report_of,
    rounding_notes,
)
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of, check_tolerances
from onnxbuild.onnxkit.accuracy.validation_fixes import noisy_findings
from onnxbuild.onnxkit.accuracy.verdict import Judgement, judge
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, read_reference
from onnxbuild.onnxkit.programs.programs import PROGRAM_ERRORS, Program, open_program
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import first_line

_FIXES = {
    "torchscript": "a trace keeps the sizes and branches of its one run: read sizes from the "
    "tensors in forward (x.shape[0]), or write `formats: {torchscript: {method: script}}`",
    "torch-export": "narrow the axis in `dynamic_axes`, or widen `formats: {torch-export: "
    "{validate: {atol: ..., rtol: ...}}}`",
    "aotinductor": "its kernels sum in another order: widen `formats: {aotinductor: {validate: "
    "{atol: ..., rtol: ...}}}`, or narrow the axis in `dynamic_axes`",
}


@dataclass(frozen=True, slots=True)
class ValidateProgramParams:
    """Parameters of a comparison.

    Attributes:
        format: The format's name, for messages.
        tolerances: In force, all defaults filled in.
    """

    format: str
    tolerances: VariantTolerances


def run(context: StepContext) -> Outcome:
    """Write report.json; breaches are findings, and outputs of which no value is compared.

    Raises:
        StepError: PyTorch can't load the program, or a tolerance names an output that is not there.
    """
    params: ValidateProgramParams = context.params
    program = open_program(context.input("program"), threads=1, where=context.where)
    judged = [
        (point.name, point.sizes, _judge_point(program, point, context))
        for point in read_reference(context.input("reference"))
    ]
    judged = pooled(judged, lambda name: bounds_of(params.tolerances, name).equal_min)
    subject = f"format '{params.format}'"
    findings = findings_of(judged, subject, lambda *_: _FIXES[params.format])
    findings += noisy_findings(judged, params.tolerances, subject, _own_bounds(params.format))
    findings += empty_findings(judged, subject)
    report = {
        "format": params.format,
        "precision": "fp32",
        "tolerances": to_json(params.tolerances),
        **report_of(judged, findings),
    }
    write_report(context.output("report"), report)
    return Outcome(report["metrics"], findings, rounding_notes(judged, subject))


def _own_bounds(name: str) -> Callable[[str, str], str]:
    def fix(output: str, _: str) -> str:
        bounds = f"`formats: {{{name}: {{validate: {{outputs: {{{output}: {{atol: ..., rtol: ...}}}}}}}}}}`"
        return f"give the output bounds of its own: {bounds}"

    return fix


def _judge_point(
    program: Program, point: ReferencePoint, context: StepContext
) -> dict[str, Judgement]:
    tolerances = context.params.tolerances
    check_tolerances(tolerances, point.outputs, context.where)
    try:
        found = program.run(point.feeds)
    except PROGRAM_ERRORS as error:
        what = f"PyTorch fails: {type(error).__name__}: {_message_of(error)}"
        failed = Judgement(None, (("comparable", what, float("inf")),))
        return dict.fromkeys(point.outputs, failed)
    return {
        name: judge(
            expected,
            found[name],
            bounds_of(tolerances, name),
            rounding_of(point, name, tolerances),
        )
        for name, expected in point.outputs.items()
    }


def _message_of(error: BaseException) -> str:
    """TorchScript reports the fault in the last line of its traceback, others in the first."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    raised = [line for line in lines if line.startswith("RuntimeError: ")]
    return raised[-1].removeprefix("RuntimeError: ") if raised else first_line(error)


KIND = StepKind(
    name="validate-program",
    version=7,
    params=ValidateProgramParams,
    inputs=("program", "reference"),
    outputs={"report": "report"},
    toolchain=("torch", "numpy"),
    run=run,
    host_bound=True,
)
