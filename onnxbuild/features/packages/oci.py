"""`oci`: an OCI layout, the form of models that registries for containers hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.step import StepKind
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import Laid, Subject
from onnxbuild.expansion.package_format import (
    PackageFormat,
    add_package,
    add_run,
    bundle_name,
    package_tolerances,
    whole_bundle,
)
from onnxbuild.expansion.requested import PACKAGES, PackagesOptions
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.oci.layout import blobs_of
from onnxbuild.steps import package_oci, run_oci

NAME = "oci"
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class OciOptions:
    """Name of the artifact in the layout."""

    tag: str = option("", help="the artifact's tag in the layout; empty: the variant's name")


def _package(scope: Scope, subject: Subject, bundle: OutputRef, options: OciOptions) -> OutputRef:
    return add_package(
        scope,
        subject,
        NAME,
        package_oci.KIND,
        params=package_oci.PackageOciParams(options.tag or bundle_name(subject)),
        inputs={"bundle": bundle},
    )


def _runs(
    scope: Scope, subject: Subject, package: OutputRef, options: OciOptions
) -> Sequence[Laid]:
    del options
    return add_run(
        scope,
        subject,
        NAME,
        run_oci.KIND,
        params=run_oci.RunOciParams(
            f"the OCI artifact of '{bundle_name(subject)}'", package_tolerances(scope, subject)
        ),
        package=package,
    )


def _held(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The blobs that the one artifact of the layout's index names.

    Raises:
        LayoutError: The layout is damaged, or names more artifacts or files.
    """
    blobs, expected = blobs_of(folder), set(whole_bundle(manifest))
    if more := sorted(blobs.keys() - expected):
        raise ValueError(f"its artifact has {more[0]}, which is no file of the bundle")
    return {name: blobs.get(name, "") for name in expected}


def _replays(
    folder: Path, subject: str, tolerances: VariantTolerances
) -> tuple[StepKind, run_oci.RunOciParams]:
    del folder
    return run_oci.KIND, run_oci.RunOciParams(subject, tolerances)


def _faults(parts: Parts) -> Iterator[Fault]:
    section = parts.sections.get(PACKAGES)
    options = getattr(section, NAME, None)
    if not isinstance(section, PackagesOptions) or not isinstance(options, OciOptions):
        return
    if options.tag and not _TAG.fullmatch(options.tag):
        yield Fault(
            f"packages.oci.tag is '{options.tag}', which no tag can be",
            parts.at(PACKAGES, NAME, "tag"),
            "write at most 128 letters, digits, `_`, `.` and `-`, as in `tag: 1.2.0`",
        )


FEATURE = PackageFormat(
    name=NAME,
    options=OciOptions,
    title="an OCI layout with the model as an artifact of registries",
    kinds=(package_oci.KIND, run_oci.KIND),
    faults=_faults,
    no_dtypes=frozenset({"bfloat16"}),  # its test is fed from NumPy's files
    package=_package,
    runs=_runs,
    held=_held,
    replays=_replays,
)
