"""Bundle what was made ahead of time and passed its gate: files, manifest, checksums, a loader."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from onnxbuild.core.axis import axes_for_callers
from onnxbuild.core.recipe import Axis, Precision
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.ahead_of_time.artifact_file import DESCRIPTION_FILE, read_description
from onnxbuild.onnxkit.bundles.checksums import describe_files, names_below, write_sums
from onnxbuild.onnxkit.loaders import ahead_of_time_bundle
from onnxbuild.onnxkit.model.inspect import describe_value
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.onnxkit.reports import write_report

FORMAT = 1
"""Raised whenever manifest.json changes in a way that its readers notice."""


@dataclass(frozen=True, slots=True)
class PackageAheadParams:
    """Content of the manifest that is not in the step's inputs.

    Attributes:
        onnxbuild: Version of this program.
        recipe_sha256: Digest of the part of the recipe that this is made from.
        variant: That it is made of.
    """

    onnxbuild: str
    recipe: str
    recipe_sha256: str
    variant: str
    precision: Precision
    axes: tuple[Axis, ...]


def run(context: StepContext) -> Outcome:
    """Write the bundle; the same inputs give the same bytes."""
    params: PackageAheadParams = context.params
    source, bundle = context.input("artifact"), context.output("bundle")
    description = read_description(source)
    made = [name for name in names_below(source) if name != DESCRIPTION_FILE]
    for name in made:
        target = bundle / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target)
    size = sum((bundle / name).stat().st_size for name in made)
    validation = json.loads((context.input("validation") / REPORT_FILE).read_text("utf-8"))
    write_report(bundle, validation, "validation.json")
    shutil.copyfile(Path(ahead_of_time_bundle.__file__), bundle / "load.py")
    inputs, outputs = _interface(context.input("model"))
    manifest = {
        "manifest": FORMAT,
        "name": params.recipe,
        "variant": params.variant,
        "precision": params.precision,
        **asdict(description),
        "recipe_sha256": params.recipe_sha256,
        "inputs": inputs,
        "outputs": outputs,
        "dynamic_axes": axes_for_callers(params.axes),
        "files": describe_files(bundle, names_below(bundle)),
        "size_bytes": size,
        "portable_size_bytes": file_bytes(context.input("model")),
        "validation": {key: validation[key] for key in ("passed", "tolerances", "metrics")},
        "versions": {"onnxbuild": params.onnxbuild, "onnxruntime": _runtime_version()},
    }
    write_report(bundle, manifest, "manifest.json")
    return Outcome(metrics={"model_bytes": size, "files": write_sums(bundle)})


def _interface(folder: Path) -> tuple[list[object], list[object]]:
    """The portable model's inputs and outputs."""
    import onnx

    from onnxbuild.onnxkit.model.model_files import model_path

    graph = onnx.load(str(model_path(folder)), load_external_data=False).graph
    inputs: list[object] = [describe_value(value) for value in graph.input]
    return inputs, [describe_value(value) for value in graph.output]


def _runtime_version() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)


KIND = StepKind(
    name="package-ahead-of-time",
    version=2,
    params=PackageAheadParams,
    inputs=("model", "artifact", "validation"),
    outputs={"bundle": "bundle"},
    toolchain=("onnx", "onnxruntime"),
    run=run,
)
