"""`cpp`: a CMake project around a bundle, with a typed header and a test by golden inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import CXX_HEADER, StepKind
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import Laid, Subject
from onnxbuild.expansion.package_format import (
    PackageFormat,
    add_package,
    add_run,
    bundle_name,
    described_at_top,
    package_reference,
    package_tolerances,
)
from onnxbuild.expansion.requested import PACKAGES, NamedBundle, PackagesOptions
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest
from onnxbuild.onnxkit.cpp.content import MODEL
from onnxbuild.onnxkit.packages.own_files import owner_of
from onnxbuild.steps import package_cpp, run_cpp

NAME, HEADERS = "cpp", "headers"
_HEADERS_AT = f"{PACKAGES}.{NAME}.{HEADERS}"
"""Name of the headers' files in Recipe.entrypoints."""


@dataclass(frozen=True, slots=True)
class CppOptions:
    """Headers and libraries that the package is compiled with."""

    headers: str = field(
        default="",
        compare=False,  # the files are in Recipe.entrypoints, whatever they are relative to
        metadata={
            "help": "folder of ONNX Runtime's C++ headers to compile the package with; left out: that of "
            "ORT_INCLUDE_DIR, or the installed ones"
        },
    )


def _refuses(bundle: NamedBundle) -> str:
    return "it can't hold strings, which the pipeline takes or gives" if bundle.has_text else ""


def _package(scope: Scope, subject: Subject, bundle: OutputRef, options: CppOptions) -> OutputRef:
    del options
    return add_package(
        scope,
        subject,
        NAME,
        package_cpp.KIND,
        params=package_cpp.PackageCppParams(package_tolerances(scope, subject)),
        inputs={"bundle": bundle, "reference": package_reference(scope, subject)},
    )


def _runs(
    scope: Scope, subject: Subject, package: OutputRef, options: CppOptions
) -> Sequence[Laid]:
    del options
    return add_run(
        scope,
        subject,
        NAME,
        run_cpp.KIND,
        params=run_cpp.RunCppParams(
            f"the C++ package of variant '{bundle_name(subject)}'",
            scope.recipe.name,
            bundle_name(subject),
            package_tolerances(scope, subject),
            scope.recipe.entrypoints.get(_HEADERS_AT),
        ),
        package=package,
    )


def _held(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    return {name: f"{MODEL}/{path}" for name, path in described_at_top(folder, manifest).items()}


def _replays(
    folder: Path, subject: str, tolerances: VariantTolerances
) -> tuple[StepKind, run_cpp.RunCppParams]:
    recipe, variant = owner_of(folder / MODEL / MANIFEST_FILE)
    return run_cpp.KIND, run_cpp.RunCppParams(subject, recipe, variant, tolerances)


def _faults(parts: Parts) -> Iterator[Fault]:
    section = parts.sections.get(PACKAGES)
    if not isinstance(section, PackagesOptions) or getattr(section, NAME, None) is None:
        return
    headers = parts.entrypoints.get(_HEADERS_AT)
    if headers and not any(PurePosixPath(each).name == CXX_HEADER for each in headers.files):
        what = f"{_HEADERS_AT} names a folder without {CXX_HEADER}"
        fix = "name the folder that has it: of ONNX Runtime's release archives `include`"
        yield Fault(what, parts.at(PACKAGES, NAME, HEADERS), fix)


FEATURE = PackageFormat(
    name=NAME,
    options=CppOptions,
    title="a CMake project with a typed header and its own test",
    kinds=(package_cpp.KIND, run_cpp.KIND),
    faults=_faults,
    below={HEADERS: "file"},
    refuses=_refuses,
    no_dtypes=frozenset({"bfloat16", "string"}),
    package=_package,
    runs=_runs,
    held=_held,
    replays=_replays,
)
