"""Bundle a PyTorch program that passed its gate: program, manifest, checksums, examples."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from onnxbuild.core.axis import axes_for_callers
from onnxbuild.core.recipe import Axis
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.bundles.checksums import describe_files, names_below, write_sums
from onnxbuild.onnxkit.bundles.cpp_examples import write_program_example
from onnxbuild.onnxkit.loaders import program_bundle
from onnxbuild.onnxkit.programs.artifact_file import read_description
from onnxbuild.onnxkit.reports import write_report

FORMAT = 1
"""Raised whenever manifest.json changes in a way that its readers notice."""


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
    """Write the bundle; the same inputs give the same bytes."""
    params: PackageProgramParams = context.params
    bundle = context.output("bundle")
    source = context.input("program")
    description = read_description(source)
    shutil.copyfile(source / description.file, bundle / description.file)
    validation = json.loads((context.input("validation") / REPORT_FILE).read_text("utf-8"))
    write_report(bundle, validation, "validation.json")
    shutil.copyfile(Path(program_bundle.__file__), bundle / "load.py")
    write_program_example(bundle / "cpp", description, params.axes)
    manifest = {
        "manifest": FORMAT,
        "name": params.recipe,
        **asdict(description),
        "file": description.file,
        "precision": "fp32",
        "recipe_sha256": params.recipe_sha256,
        "dynamic_axes": axes_for_callers(params.axes),
        "files": describe_files(bundle, names_below(bundle)),
        "validation": {key: validation[key] for key in ("passed", "tolerances", "metrics")},
        "versions": {"onnxbuild": params.onnxbuild, "torch": _torch_version()},
    }
    write_report(bundle, manifest, program_bundle.MANIFEST)
    size = (bundle / description.file).stat().st_size
    return Outcome(metrics={"model_bytes": size, "files": write_sums(bundle)})


def _torch_version() -> str:
    from importlib import metadata

    return metadata.version("torch")


KIND = StepKind(
    name="package-program",
    version=4,
    params=PackageProgramParams,
    inputs=("program", "validation"),
    outputs={"bundle": "bundle"},
    toolchain=("torch",),
    run=run,
)
