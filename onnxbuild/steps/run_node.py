"""Run a Node package's own test as npm would, and hold what its model gives against the reference."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.environment import NPM, Environment
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE
from onnxbuild.onnxkit.node.own_test import run_own_test, runtime_loads
from onnxbuild.onnxkit.packages.own_test import NOT_HERE, OwnTest
from onnxbuild.onnxkit.packages.tested import outcome_of, refuse_damage


@dataclass(frozen=True, slots=True)
class RunNodeParams:
    """Parameters of a package's run.

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
    package, there = refuse_damage(context), params.environment
    manifest = None
    if not there.interpreter:
        test = OwnTest(NOT_HERE, "there is no Node here: `apt-get install nodejs npm`", {})
    elif not there.folder:
        test = OwnTest(NOT_HERE, "npm has not installed onnxruntime-node here", {})
    else:
        test = run_own_test(package, there, context.scratch)
        if test.code != NOT_HERE or runtime_loads(there):
            manifest = package / MANIFEST_FILE
    return outcome_of(
        test,
        context,
        params.tolerances,
        subject=params.subject,
        command="node test.js",
        fix="run `npm install && npm test` in a copy of the package's folder",
        manifest=manifest,
    )


KIND = StepKind(
    name="run-node",
    version=5,
    params=RunNodeParams,
    inputs=("package", "reference"),
    outputs={"report": "report"},
    toolchain=("numpy", NPM),
    run=run,
    host_bound=True,
)
