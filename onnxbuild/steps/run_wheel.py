"""Run a wheel's own test as its user would, and hold what its model gives against the reference."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.step import Finding, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.data.array_files import read_arrays
from onnxbuild.onnxkit.data.reference_files import read_points
from onnxbuild.onnxkit.packages.verdict import verdict_on
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.wheels.archive import WheelError
from onnxbuild.onnxkit.wheels.own_test import NOT_HERE, run_own_test

_FIX = (
    "keep the wheel's folder and run `python -m {package}` in an environment that has it installed"
)


@dataclass(frozen=True, slots=True)
class RunWheelParams:
    """All that steers it.

    Attributes:
        subject: What is judged, for messages.
        package: What Python imports.
        tolerances: The variant's.
    """

    subject: str
    package: str
    tolerances: VariantTolerances


def run(context: StepContext) -> Outcome:
    """Write report.json; an output out of its tolerance is a finding. A wheel that can't run here is skipped.

    Raises:
        StepError: The wheel is damaged, or its test dies.
    """
    params: RunWheelParams = context.params
    (wheel,) = context.input("package").glob("*.whl")
    try:
        test = run_own_test(wheel, params.package, context.scratch)
    except WheelError as error:
        raise StepError(
            str(error), where=context.where, fix="run `onnxbuild cache verify`"
        ) from error
    if test.code == NOT_HERE:
        write_report(context.output("report"), {"skipped": test.said})
        return Outcome(
            {"skipped": test.said}, notes=(f"{params.subject} was not run: {test.said}",)
        )
    if test.code not in (0, 1) or not test.outputs.is_dir():
        what = f"`python -m {params.package}` ends with {test.code}: {test.said}"
        raise StepError(what, where=context.where)
    report, findings = verdict_on(
        {each.name: read_arrays(test.outputs / each.file) for each in read_points(test.golden)},
        context.input("reference"),
        params.tolerances,
        subject=params.subject,
        fix=_FIX.format(package=params.package),
        where=context.where,
    )
    if test.code and not findings:
        findings = (Finding(f"its own test fails: {test.said}", params.subject),)
        report |= {"passed": False, "findings": to_json(list(findings))}
    write_report(context.output("report"), {"package": params.package, **report})
    return Outcome(report["metrics"], findings)


KIND = StepKind(
    name="run-wheel",
    version=1,
    params=RunWheelParams,
    inputs=("package", "reference"),
    outputs={"report": "report"},
    toolchain=("numpy", "onnxruntime"),
    run=run,
    host_bound=True,
)
