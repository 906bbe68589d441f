"""Bundle a model made ahead of time that passed its gate: files, manifest, checksums, a loader."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.axis import axes_for_callers
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import Axis, Precision
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.ahead_of_time.artifact_file import (
    DESCRIPTION_FILE,
    SOURCE,
    read_description,
)
from onnxbuild.onnxkit.bundles.manifest import (
    VALIDATION_FILE,
    BundleTarget,
    Manifest,
    ManifestProvider,
)
from onnxbuild.onnxkit.bundles.write import (
    described,
    libraries_of,
    names_below,
    read_report,
    values,
    verdict_of,
    versions_of,
    write_bundle,
)
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model
from onnxbuild.onnxkit.processing.labels import LabelsFile, labelled
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import short_name


@dataclass(frozen=True, slots=True)
class PackageAheadParams:
    """Content of the manifest that is not in the step's inputs.

    Attributes:
        onnxbuild: Version of this program.
        recipe_sha256: Digest of the part of the recipe that this is made from.
        variant: That it is made of.
        labels: Names of classes.
    """

    onnxbuild: str
    recipe: str
    recipe_sha256: str
    variant: str
    precision: Precision
    axes: tuple[Axis, ...]
    labels: tuple[LabelsFile, ...] = field(default=(), metadata={"sparse": True})


def run(context: StepContext) -> Outcome:
    """Write the bundle; inputs and outputs are those of the portable model.

    Raises:
        StepError: A file of labels can't be read.
    """
    params: PackageAheadParams = context.params
    source, portable = context.input("artifact"), context.input("model")
    found = read_description(source)
    summary = summarize(load_model(portable, weights="left"))
    target = short_name(found.provider)
    validation = read_report(context.input("validation"))
    settings = {"graph_optimization": found.graph_optimization, "config": found.config}
    session = from_json(SessionSettings, settings)
    draft = Manifest(
        name=params.recipe,
        variant=params.variant,
        kind=found.kind,
        file=found.file,
        precision=params.precision,
        recipe_sha256=params.recipe_sha256,
        inputs=values(summary["inputs"]),
        outputs=labelled(values(summary["outputs"]), params.labels, context),
        dynamic_axes=axes_for_callers(params.axes),
        made_for=found.made_for,
        targets={
            target: BundleTarget(
                (ManifestProvider(found.provider, found.provider_options),), session
            )
        },
        folder_options=found.folder_options,
        validation={target: verdict_of(validation)},
        versions=versions_of(params.onnxbuild, "onnxruntime"),
        portable_size_bytes=file_bytes(portable),
        facts={**found.facts, SOURCE: _digests(portable)},
    )
    names = [name for name in names_below(source) if name != DESCRIPTION_FILE]
    reports = {VALIDATION_FILE: {target: validation}}
    libraries = libraries_of(context)
    bundle = context.output("bundle")
    return write_bundle(bundle, source, names, draft, reports, libraries=libraries)


def _digests(model: Path) -> dict[str, str]:
    return {name: described(model / name).sha256 for name in names_below(model)}


KIND = StepKind(
    name="package-ahead-of-time",
    version=6,
    params=PackageAheadParams,
    inputs=("model", "artifact", "validation"),
    outputs={"bundle": "bundle"},
    toolchain=("onnx", "onnxruntime"),
    run=run,
    entrypoints=lambda params: tuple(each.file for each in params.labels),
)
