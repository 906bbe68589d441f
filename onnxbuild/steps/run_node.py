"""Run a Node package's own test as npm would, and hold what its model gives against the reference."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.environment import NPM, Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.step import Finding, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.node.own_test import NOT_HERE, PackageError, run_own_test
from onnxbuild.onnxkit.packages.golden import golden_points, read_plain_outputs
from onnxbuild.onnxkit.packages.verdict import verdict_on
from onnxbuild.onnxkit.reports import write_report

_FIX = "run `npm install && npm test` in the package's folder"


@dataclass(frozen=True, slots=True)
class RunNodeParams:
    """All that steers it.

    Attributes:
        subject: What is judged, for messages.
        tolerances: The bundle's.
        environment: Where Node and onnxruntime-node are.
    """

    subject: str
    tolerances: VariantTolerances
    environment: Environment


def run(context: StepContext) -> Outcome:
    """Write report.json; an output out of its tolerance is a finding. A package that can't run here is skipped.

    Raises:
        StepError: The package is damaged, or its test dies.
    """
    params: RunNodeParams = context.params
    if not params.environment.interpreter:
        return _skipped(context, "there is no Node here: `apt-get install nodejs npm`")
    if not params.environment.folder:
        return _skipped(context, "npm could not install onnxruntime-node, see the notice above")
    try:
        test = run_own_test(context.input("package"), params.environment, context.scratch)
    except PackageError as error:
        raise StepError(
            str(error), where=context.where, fix="run `onnxbuild cache verify`"
        ) from error
    if test.code == NOT_HERE:
        return _skipped(context, test.said)
    try:
        found = read_plain_outputs(test.outputs) if test.code in {0, 1} else {}
    except (OSError, ValueError):
        found = {}
    wanted = [each.name for each in golden_points(context.input("reference"))]
    if not found or not set(found) <= set(wanted):
        what = f"`node test.js` ends with {test.code}: {test.said}"
        raise StepError(what, where=context.where, fix=_FIX)
    report, findings = verdict_on(
        found,
        context.input("reference"),
        params.tolerances,
        subject=params.subject,
        fix=_FIX,
        where=context.where,
    )
    lacking = [name for name in wanted if name not in found]
    if lacking:
        findings = (*findings, Finding(f"it gives nothing at {', '.join(lacking)}", params.subject, _FIX))  # fmt: skip
    elif test.code and not findings:
        findings = (Finding(f"its own test fails: {test.said}", params.subject, _FIX),)
    if findings:
        report |= {"passed": False, "findings": to_json(list(findings))}
    write_report(context.output("report"), report)
    return Outcome(report["metrics"], findings)


def _skipped(context: StepContext, why: str) -> Outcome:
    write_report(context.output("report"), {"skipped": why})
    params: RunNodeParams = context.params
    return Outcome({"skipped": why}, notes=(f"{params.subject} was not run: {why}",))


KIND = StepKind(
    name="run-node",
    version=1,
    params=RunNodeParams,
    inputs=("package", "reference"),
    outputs={"report": "report"},
    toolchain=("numpy", NPM),
    run=run,
    host_bound=True,
)
