"""`cpp`: a CMake project around a bundle, with a typed header and a test by golden inputs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import (
    COMPILER,
    CXX_HEADER,
    HEADERS,
    OPTIONAL,
    PROGRAM,
    REPORT_FILE,
    Outcome,
    StepContext,
)
from onnxbuild.document.faults import Fault
from onnxbuild.expansion.generation import expected_tokens_of, has_prompts
from onnxbuild.expansion.package_format import (
    Packaged,
    PackageFormat,
    PackageRequest,
    RunPackage,
    described_at_top,
    package_kind,
    run_kind,
)
from onnxbuild.expansion.requested import PACKAGES
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest
from onnxbuild.onnxkit.cpp.compiling import BuildFailedError, compile_test, find_tools, run_test
from onnxbuild.onnxkit.cpp.content import (
    MODEL,
    names_of,
    refused_port,
    usable_providers,
    write_package,
)
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.packages.contents import packed, read_bundle, refuse_type
from onnxbuild.onnxkit.packages.package_run import (
    NamedRunParams,
    checked_named_package,
    judged,
    refused,
    skipped,
)
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.providers import short_name
from onnxbuild.steps.generate import EXACT

_LEAVE_OUT = "take the variant out of `packages: {variants: [...]}`, or `cpp` out of `packages`"
_TOKENS = "tokens"
_HEADERS_AT = f"{PACKAGES}.cpp.headers"
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


@dataclass(frozen=True, slots=True)
class PackageCppParams:
    """Parameters of a package; `tolerances` are the variant's."""

    tolerances: VariantTolerances


def package(context: StepContext) -> Outcome:
    """Write the project and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: C++ has no type for an input or output, or none of the execution providers can be appended
            in C++.
    """
    params: PackageCppParams = context.params
    bundle, manifest = read_bundle(context)
    if refused := refused_port(signature_of(manifest)):
        why = f"is of the type {refused.dtype or 'of no tensor'}, which C++ packages don't carry"
        refuse_type(context, refused, why, _LEAVE_OUT)
    asked = [each.name for each in manifest.providers or ()]
    usable = usable_providers(manifest)
    if not usable:
        raise StepError(
            f"ONNX Runtime's C++ API can't append {' or '.join(asked)}, and the variant has no other execution provider",
            where=context.where,
            fix=f"add `cpu` to `providers`, or {_LEAVE_OUT}",
        )
    reference = context.input("reference")
    texts: Sequence[tuple[Sequence[int], Sequence[int]]] = ()
    if _TOKENS in context.input_names:
        golden = json.loads((context.input(_TOKENS) / REPORT_FILE).read_text("utf-8"))
        texts = list(zip(golden["prompts"], golden["tokens"], strict=True))
    points = write_package(
        context.output("bundle"), bundle, manifest, reference, params.tolerances, texts=texts
    )
    left = [short_name(name) for name in asked if name not in usable]
    notes = [f"ONNX Runtime's C++ API can't append {' or '.join(left)}: left out"] if left else []
    return packed(context, manifest, {"golden_points": points}, notes)


@dataclass(frozen=True, slots=True)
class RunCppParams(NamedRunParams):
    """Parameters of a package's run; `headers` are ONNX Runtime's, None for those that are installed."""

    headers: Entrypoint | None = None


def run(context: StepContext) -> Outcome:
    """Compile the package and run its own test; one that can't be compiled here is skipped.

    Raises:
        StepError: The package is damaged or of another variant, does not compile, or its test dies.
    """
    params: RunCppParams = context.params
    subject, program = params.subject, names_of(params.recipe, params.variant).program
    folder, names = checked_named_package(context, f"{MODEL}/{MANIFEST_FILE}")
    tools = find_tools(_headers(context))
    if isinstance(tools, str):
        return skipped(context, tools)
    try:
        phase("compiling its test")
        compiled = compile_test(folder, program, tools, context.scratch)
    except BuildFailedError as error:
        raise StepError(
            f"{subject} does not compile: {error}",
            where=context.where,
            fix="see the step's log (`onnxbuild log`)",
        ) from error
    test = run_test(compiled, folder, context.scratch)
    if test.is_complete and test.outputs.keys() != names:
        raise refused(f"{subject} ran other golden points than it holds", context)
    by = "CMake" if tools.cmake else "the compiler alone"
    return judged(
        test,
        context,
        command=f"{program}, compiled with {by}",
        fix=f"compile the package as its README.md says, and run `build/{program}`",
        manifest=folder / MODEL / MANIFEST_FILE,
    )


def _headers(context: StepContext) -> Path | None:
    """The folder of the headers: the recipe's, else what is installed."""
    params: RunCppParams = context.params
    if params.headers is None:
        return context.place(HEADERS)
    files = [path for _, path in context.files(params.headers)]
    return next((path.parent for path in files if path.name == CXX_HEADER), None)


def _run_params(asked: RunPackage) -> RunCppParams:
    packaged = asked.packaged
    headers = packaged.recipe.entrypoints.get(_HEADERS_AT) if packaged else None
    return RunCppParams(asked.subject, asked.tolerances, asked.recipe, asked.variant, headers)


def _inputs_of(packaged: Packaged) -> Mapping[str, OutputRef]:
    """PyTorch's tokens, of a variant whose own must be the same."""
    subject = packaged.subject
    is_exact = subject.further is None and subject.variant.precision in EXACT
    if not is_exact or not has_prompts(packaged.recipe):
        return {}
    return {_TOKENS: expected_tokens_of(packaged.scope)}


def _contents(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    return {name: f"{MODEL}/{path}" for name, path in described_at_top(folder, manifest).items()}


def _faults(request: PackageRequest) -> Iterator[Fault]:
    headers = request.parts.entrypoints.get(_HEADERS_AT)
    if headers and not any(PurePosixPath(each).name == CXX_HEADER for each in headers.files):
        what = f"{_HEADERS_AT} names a folder without {CXX_HEADER}"
        fix = "name the folder that has it: of ONNX Runtime's release archives `include`"
        yield request.fault(what, fix, "headers")


FEATURE: PackageFormat = PackageFormat(
    name="cpp",
    options=CppOptions,
    below={"headers": "file"},
    title="a CMake project with a typed header and its own test",
    called="the C++ package of variant",
    request_faults=_faults,
    refuses=lambda bundle: (
        "it can't hold strings, which the pipeline takes or gives" if bundle.has_text else ""
    ),
    no_dtypes=frozenset({"bfloat16", "string"}),
    kind=package_kind(
        "cpp",
        5,
        PackageCppParams,
        package,
        toolchain=("numpy", "jinja2"),
        inputs=("bundle", "reference", f"{_TOKENS}?"),
    ),
    inputs_of=_inputs_of,
    params=lambda packaged: PackageCppParams(packaged.tolerances),
    run=run_kind(
        "cpp",
        5,
        RunCppParams,
        run,
        toolchain=(
            "numpy",
            "onnxruntime",
            f"{COMPILER}{OPTIONAL}",
            f"{PROGRAM}cmake>{OPTIONAL}",
            f"{HEADERS}{OPTIONAL}",
        ),
        entrypoints=lambda params: () if params.headers is None else (params.headers,),
    ),
    run_params=_run_params,
    contents=_contents,
)
