"""`ort-mobile`: a model in ORT format for phones, what it needs and takes, and sources that call it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.artifacts import add_ort_model, artifact_address
from onnxbuild.expansion.delivery import Bundle, artifact_bundle
from onnxbuild.expansion.feature import Laid, Subject
from onnxbuild.expansion.package_format import PackageFormat
from onnxbuild.expansion.requested import PACKAGES, NamedBundle
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.tolerances import tolerances_of
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE
from onnxbuild.onnxkit.ort_mobile.described import DESCRIBE
from onnxbuild.onnxkit.ort_mobile.held import own_faults
from onnxbuild.onnxkit.packages.own_files import owner_of
from onnxbuild.steps import package_ort_mobile, run_ort_mobile

NAME = "ort-mobile"


def _package(
    scope: Scope, subject: Subject, bundle: OutputRef, options: OrtFormatOptions
) -> OutputRef:
    del bundle  # the portable one
    recipe, variant = scope.recipe, subject.variant
    inputs = {
        "bundle": _judged(scope, subject, options).files,
        "model": subject.model,
        "reference": scope.reference(variant, {}),
    }
    step = scope.step(
        artifact_address(recipe, variant, NAME, "assemble"),
        package_ort_mobile.KIND,
        package_ort_mobile.PackageOrtMobileParams(tolerances_of(recipe, variant)),
        inputs,
        at=variant.location,
        section=PACKAGES,
    )
    return OutputRef(step, "bundle")


def _runs(
    scope: Scope, subject: Subject, package: OutputRef, options: OrtFormatOptions
) -> Sequence[Laid]:
    recipe, variant = scope.recipe, subject.variant
    step = scope.step(
        artifact_address(recipe, variant, NAME, "run"),
        run_ort_mobile.KIND,
        run_ort_mobile.RunOrtMobileParams(
            f"the package for phones of variant '{variant.name}'",
            recipe.name,
            variant.name,
            tolerances_of(recipe, variant),
        ),
        {"package": package, "reference": scope.reference(variant, {})},
        at=variant.location,
        section=PACKAGES,
    )
    (gate,) = _judged(scope, subject, options).judged_by
    return (
        Laid(OutputRef(gate, "report"), "validation.json"),
        Laid(OutputRef(step, "report"), "run.json"),
    )


def _judged(scope: Scope, subject: Subject, options: OrtFormatOptions) -> Bundle:
    """The model in ORT format, its gate and its bundle; the same steps each time."""
    made = add_ort_model(scope, subject.variant, subject.model, NAME, options)
    return artifact_bundle(scope, subject, made)


def _refuses(bundle: NamedBundle) -> str:
    return "it is made of a variant's own model" if bundle.is_further else ""


def _replays(
    folder: Path, subject: str, tolerances: VariantTolerances
) -> tuple[StepKind, run_ort_mobile.RunOrtMobileParams]:
    recipe, variant = owner_of(folder / MANIFEST_FILE)
    params = run_ort_mobile.RunOrtMobileParams(subject, recipe, variant, tolerances)
    return run_ort_mobile.KIND, params


FEATURE: PackageFormat = PackageFormat(
    name=NAME,
    options=OrtFormatOptions,
    title="the model in ORT format for phones, with sizes and sources",
    kinds=(package_ort_mobile.KIND, run_ort_mobile.KIND),
    refuses=_refuses,
    no_dtypes=frozenset({"bfloat16"}),
    package=_package,
    runs=_runs,
    has_model=lambda _: False,
    own_manifest=MANIFEST_FILE,
    describes=DESCRIBE,
    own_faults=own_faults,
    replays=_replays,
)
