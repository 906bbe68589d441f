"""Bundle a PyTorch program that passed its gate: program, manifest, checksums, examples."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.axis import axes_for_callers
from onnxbuild.core.recipe import Axis
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.bundles.manifest import VALIDATION_FILE, Manifest, Value
from onnxbuild.onnxkit.bundles.write import read_report, verdict_of, versions_of, write_bundle
from onnxbuild.onnxkit.programs.artifact_file import read_description


@dataclass(frozen=True, slots=True)
class PackageProgramParams:
    """Content of the manifest that is not in the step's inputs.

    Attributes:
        onnxbuild: Version of this program.
        recipe_sha256: Digest of the part of the recipe that this format is made from.
    """

    onnxbuild: str
    recipe: str
    recipe_sha256: str
    axes: tuple[Axis, ...]


def run(context: StepContext) -> Outcome:
    """Write the bundle."""
    params: PackageProgramParams = context.params
    source = context.input("program")
    found = read_description(source)
    validation = read_report(context.input("validation"))
    draft = Manifest(
        name=params.recipe,
        kind=found.format,
        file=found.file,
        precision="fp32",
        recipe_sha256=params.recipe_sha256,
        inputs=tuple(Value(each.name, each.dtype, each.shape) for each in found.inputs),
        outputs=tuple(map(Value, found.outputs)),
        dynamic_axes=axes_for_callers(params.axes),
        made_for=found.made_for,
        by_keyword=found.by_keyword,
        validation={CPU: verdict_of(validation)},
        versions=versions_of(params.onnxbuild, "torch"),
    )
    reports = {VALIDATION_FILE: {CPU: validation}}
    return write_bundle(context.output("bundle"), source, (found.file,), draft, reports)


KIND = StepKind(
    name="package-program",
    version=7,
    params=PackageProgramParams,
    inputs=("program", "validation"),
    outputs={"bundle": "bundle"},
    toolchain=("torch",),
    run=run,
)
