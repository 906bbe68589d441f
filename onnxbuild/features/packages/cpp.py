"""`cpp`: a CMake project around a bundle, with a typed header and a test by golden inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import CXX_HEADER
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.artifacts import artifact_address
from onnxbuild.expansion.asked import PACKAGES, PackagesOptions
from onnxbuild.expansion.feature import Laid, PackageFormat, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.tolerances import tolerances_of
from onnxbuild.steps import package_cpp, run_cpp

NAME, HEADERS = "cpp", "headers"
_HEADERS_AT = f"{PACKAGES}.{NAME}.{HEADERS}"
"""Name of the headers' files in Recipe.entrypoints."""

_NO_TYPE = frozenset({"string", "bfloat16"})


@dataclass(frozen=True, slots=True)
class CppOptions:
    """Where the build finds what it compiles the package with."""

    headers: str = field(
        default="",
        compare=False,  # the files are in Recipe.entrypoints, whatever they are relative to
        metadata={
            "help": "folder of ONNX Runtime's C++ headers to compile the package with; left out: that of "
            "ORT_INCLUDE_DIR, or the installed ones"
        },
    )


def _package(scope: Scope, subject: Subject, bundle: OutputRef, options: CppOptions) -> OutputRef:
    del options
    recipe, variant = scope.recipe, subject.variant
    step = scope.step(
        artifact_address(recipe, variant, NAME, "package"),
        package_cpp.KIND,
        package_cpp.PackageCppParams(tolerances_of(recipe, variant)),
        {"bundle": bundle, "reference": _reference(scope, subject)},
        at=variant.location,
        section=PACKAGES,
    )
    return OutputRef(step, "bundle")


def _runs(
    scope: Scope, subject: Subject, package: OutputRef, options: CppOptions
) -> Sequence[Laid]:
    del options
    recipe, variant = scope.recipe, subject.variant
    step = scope.step(
        artifact_address(recipe, variant, NAME, "run"),
        run_cpp.KIND,
        run_cpp.RunCppParams(
            recipe.name,
            variant.name,
            tolerances_of(recipe, variant),
            recipe.entrypoints.get(_HEADERS_AT),
        ),
        {"package": package, "reference": _reference(scope, subject)},
        at=variant.location,
        section=PACKAGES,
    )
    return (Laid(OutputRef(step, "report"), "run.json"),)


def _reference(scope: Scope, subject: Subject) -> OutputRef:
    return scope.reference(subject.variant, subject.session.settings.free_dimensions)


def _faults(parts: Parts) -> Iterator[Fault]:
    section = parts.sections.get(PACKAGES)
    if not isinstance(section, PackagesOptions) or getattr(section, NAME, None) is None:
        return
    for each in parts.inputs.values():
        if each.dtype in _NO_TYPE:
            what = f"input '{each.name}' is {each.dtype}, which C++ packages don't carry"
            fix = f"take `{NAME}` out of `{PACKAGES}`"
            if each.dtype == "string":
                fix += "; those for Python take text"
            yield Fault(what, parts.key_at(PACKAGES, NAME), fix)
    headers = parts.entrypoints.get(_HEADERS_AT)
    if headers and not any(PurePosixPath(each).name == CXX_HEADER for each in headers.files):
        what = f"{_HEADERS_AT} names a folder without {CXX_HEADER}"
        fix = "name the folder that has it: of ONNX Runtime's release archives `include`"
        yield Fault(what, parts.at(PACKAGES, NAME, HEADERS), fix)


FEATURE = PackageFormat(
    name=NAME,
    options=CppOptions,
    help="`{}` or options: a CMake project with a typed header and its own test, in VARIANT-cpp/",
    kinds=(package_cpp.KIND, run_cpp.KIND),
    faults=_faults,
    below={HEADERS: "file"},
    package=_package,
    runs=_runs,
)
