"""Open the model of a package for phones, and hold what it gives for the golden inputs against the reference."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.packages.golden import GOLDEN, read_plain_inputs
from onnxbuild.onnxkit.packages.tested import check_own
from onnxbuild.onnxkit.packages.verdict import verdict_on
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

_FIX = "open model.ort with the inputs in golden/, as the package's README.md says"


@dataclass(frozen=True, slots=True)
class RunOrtMobileParams:
    """Parameters of a package's run.

    Attributes:
        subject: What is judged, for messages.
        recipe: Name of the recipe.
        variant: Name of the variant.
        tolerances: The variant's.
    """

    subject: str
    recipe: str
    variant: str
    tolerances: VariantTolerances


def run(context: StepContext) -> Outcome:
    """Write report.json; an output out of its tolerance is a finding.

    Raises:
        StepError: The package is damaged or of another variant, or ONNX Runtime refuses its model.
    """
    params: RunOrtMobileParams = context.params
    package, reference = context.input("package"), context.input("reference")
    subject = params.subject
    check_own(
        context,
        params.tolerances,
        subject=subject,
        manifest=MANIFEST_FILE,
        recipe=params.recipe,
        variant=params.variant,
    )
    manifest = read_manifest(json.loads((package / MANIFEST_FILE).read_text("utf-8")))
    settings = (manifest.targets or {})[CPU].session.judged()
    session = open_session(package / manifest.file, settings=settings, where=context.where)
    found = {
        name: run_session(session, feeds, context.where)
        for name, feeds in read_plain_inputs(package / GOLDEN).items()
    }
    report, findings = verdict_on(
        found, reference, params.tolerances, subject=subject, fix=_FIX, where=context.where
    )
    write_report(context.output("report"), report)
    return Outcome(report["metrics"], findings)


KIND = StepKind(
    name="run-ort-mobile",
    version=4,
    params=RunOrtMobileParams,
    inputs=("package", "reference"),
    outputs={"report": "report"},
    toolchain=("numpy", "onnxruntime"),
    run=run,
    host_bound=True,
)
