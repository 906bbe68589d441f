"""Run a wheel's own test as its user would, and hold what its model gives against the reference."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.packages.own_test import run_own_test
from onnxbuild.onnxkit.packages.tested import outcome_of, refuse_damage, refused
from onnxbuild.onnxkit.wheels.archive import WheelError, only_wheel, unpack_wheel

_FIX = (
    "keep the wheel's folder and run `python -m {package}` in an environment that has it installed"
)


@dataclass(frozen=True, slots=True)
class RunWheelParams:
    """Parameters of a package's run.

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
    package, site = refuse_damage(context), context.scratch / "site"
    try:
        phase("unpacking the wheel")
        unpack_wheel(only_wheel(package), site)
    except WheelError as error:
        raise refused(error, context) from error
    return outcome_of(
        run_own_test(site, params.package, context.scratch),
        context,
        params.tolerances,
        subject=params.subject,
        command=f"python -m {params.package}",
        fix=_FIX.format(package=params.package),
        manifest=site / params.package / MANIFEST_FILE,
    )


KIND = StepKind(
    name="run-wheel",
    version=6,
    params=RunWheelParams,
    inputs=("package", "reference"),
    outputs={"report": "report"},
    toolchain=("numpy", "onnxruntime"),
    run=run,
    host_bound=True,
)
