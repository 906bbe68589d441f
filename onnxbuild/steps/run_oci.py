"""Unpack an OCI layout as who pulls it does, and hold what its model gives against the reference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.oci.layout import LayoutError, unpack_layout
from onnxbuild.onnxkit.packages.own_test import own_test_files, run_own_test
from onnxbuild.onnxkit.packages.tested import outcome_of, refuse_damage, refused

_PACKAGE = "pulled"


@dataclass(frozen=True, slots=True)
class RunOciParams:
    """Parameters of a package's run.

    Attributes:
        subject: What is judged, for messages.
        tolerances: The variant's.
    """

    subject: str
    tolerances: VariantTolerances


def run(context: StepContext) -> Outcome:
    """Write report.json: each blob held to its digest, the model opened by the load.py that came with it.

    Raises:
        StepError: The layout is damaged, or the model's process dies.
    """
    params: RunOciParams = context.params
    site = context.scratch / "site"
    folder = site / _PACKAGE
    package = refuse_damage(context)
    try:
        phase("unpacking the layout")
        unpack_layout(package, folder)
    except LayoutError as error:
        raise refused(error, context) from error
    for name, content in own_test_files(context.input("reference"), params.tolerances).items():
        (folder / name).parent.mkdir(exist_ok=True)
        if isinstance(content, Path):
            (folder / name).symlink_to(content.resolve())
        else:
            (folder / name).write_bytes(content)
    return outcome_of(
        run_own_test(site, _PACKAGE, context.scratch),
        context,
        params.tolerances,
        subject=params.subject,
        command="pull, then load.py",
        fix="pull the artifact and compare what its load.py gives with the variant's",
        manifest=folder / MANIFEST_FILE,
    )


KIND = StepKind(
    name="run-oci",
    version=5,
    params=RunOciParams,
    inputs=("package", "reference"),
    outputs={"report": "report"},
    toolchain=("numpy", "onnxruntime"),
    run=run,
    host_bound=True,
)
