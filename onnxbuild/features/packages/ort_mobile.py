"""`ort-mobile`: a model in ORT format for phones, what it needs and takes, and sources that call it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.core.target import CPU
from onnxbuild.expansion.artifacts import add_ort_model
from onnxbuild.expansion.package_format import OwnModel, PackageFormat, package_kind, run_kind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.ahead_of_time.artifact_file import OPERATORS_FILE
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_format import required_operators
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest, Value, read_manifest
from onnxbuild.onnxkit.ort_mobile.content import SIZES_FILE, write_package
from onnxbuild.onnxkit.ort_mobile.coverage import coverage_of
from onnxbuild.onnxkit.ort_mobile.described import DESCRIBE, sizes_of
from onnxbuild.onnxkit.packages.contents import packed, read_bundle, refuse_type
from onnxbuild.onnxkit.packages.golden import GOLDEN, no_golden_port, read_plain_inputs
from onnxbuild.onnxkit.packages.package_run import (
    NamedRunParams,
    OwnTest,
    checked_named_package,
    judged,
)
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

NAME = "ort-mobile"


@dataclass(frozen=True, slots=True)
class PackageOrtMobileParams:
    """Parameters of a package; `tolerances` are the variant's."""

    tolerances: VariantTolerances


def package(context: StepContext) -> Outcome:
    """Write the package and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: An input or output is of a type that no golden file holds.
    """
    params: PackageOrtMobileParams = context.params
    bundle, manifest = read_bundle(context)
    refused = no_golden_port(signature_of(manifest))
    refuse_type(context, refused, "is of a type that golden files don't hold")
    sizes = sizes_of(bundle / manifest.file)
    lacking = write_package(
        context.output("bundle"),
        bundle,
        manifest,
        context.input("reference"),
        params.tolerances,
        sizes=sizes,
        coverage=coverage_of(context.input("model"), context.scratch, context.where),
    )
    metrics = {"weights_bytes": sizes["weights_bytes"]}
    return packed(context, manifest, metrics, (f"no source for {each}" for each in lacking))


def run(context: StepContext) -> Outcome:
    """Open the model and run the golden inputs that the package holds.

    Raises:
        StepError: The package is damaged or of another variant, or ONNX Runtime refuses its model.
    """
    folder, _ = checked_named_package(context, MANIFEST_FILE)
    manifest = read_manifest(json.loads((folder / MANIFEST_FILE).read_text("utf-8")))
    settings = (manifest.targets or {})[CPU].session.judged()
    session = open_session(folder / manifest.file, settings=settings, where=context.where)
    found = {
        name: run_session(session, feeds, context.where)
        for name, feeds in read_plain_inputs(folder / GOLDEN).items()
    }
    fix = "open model.ort with the inputs in golden/, as the package's README.md says"
    return judged(OwnTest(0, "", found), context, command="", fix=fix)


def _model_faults(folder: Path, manifest: Manifest, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what of a package does not fit its model, which `described` read, or its variant: the model is not run."""
    for side, values in (("inputs", manifest.inputs), ("outputs", manifest.outputs)):
        if not _fit(found[side], values):
            yield f"its model has other {side} than the variant"
    config = (folder / OPERATORS_FILE).read_text(encoding="utf-8")
    needed = required_operators(config)
    used = {each["operator"] for each in found["sizes"]["operators"]}
    if lacking := sorted(used - set(needed)):
        yield f"{OPERATORS_FILE} lacks operators of its model: {', '.join(lacking)}"
    sizes = json.loads((folder / SIZES_FILE).read_text(encoding="utf-8"))
    if sizes != {**found["sizes"], "kernels": needed}:
        yield f"{SIZES_FILE} is of another model"


def _fit(found: Sequence[Sequence[Any]], values: Iterable[Value]) -> bool:
    """Return whether names and types are equal, in order, and fixed sizes do not contradict."""
    wanted = [*values]
    if [(name, dtype) for name, dtype, _ in found] != [(e.name, e.dtype) for e in wanted]:
        return False
    return all(
        _same_shape(shape, each.shape) for (_, _, shape), each in zip(found, wanted, strict=True)
    )


def _same_shape(found: Sequence[int] | None, wanted: Sequence[int | str] | None) -> bool:
    if found is None or wanted is None:
        return True
    if len(found) != len(wanted):
        return False
    pairs = zip(found, wanted, strict=True)
    return all(one == other for one, other in pairs if one >= 0 and isinstance(other, int))


FEATURE: PackageFormat = PackageFormat(
    name=NAME,
    options=OrtFormatOptions,
    title="the model in ORT format for phones, with sizes and sources",
    called="the package for phones of variant",
    refuses=lambda bundle: "it is made of a variant's own model" if bundle.is_further else "",
    no_dtypes=frozenset({"bfloat16"}),
    kind=package_kind(
        "ort-mobile",
        2,
        PackageOrtMobileParams,
        package,
        toolchain=("numpy", "jinja2", "onnx", "onnxruntime", "flatbuffers"),
        inputs=("bundle", "model", "reference"),
    ),
    params=lambda packaged: PackageOrtMobileParams(packaged.tolerances),
    step="assemble",  # `package` makes the bundle of the converted model
    inputs_of=lambda packaged: {"model": packaged.subject.model},
    converts=lambda packaged: add_ort_model(
        packaged.scope, packaged.subject.variant, packaged.subject.model, NAME, packaged.options
    ),
    reference=lambda packaged: packaged.scope.reference(packaged.subject.variant, {}),
    run=run_kind("ort-mobile", 4, NamedRunParams, run, toolchain=("numpy", "onnxruntime")),
    run_params=lambda asked: NamedRunParams(
        asked.subject, asked.tolerances, asked.recipe, asked.variant
    ),
    own_model=OwnModel(describes=DESCRIBE, faults=_model_faults),
)
