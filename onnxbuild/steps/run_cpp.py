"""Compile a C++ package, run its golden inputs, and hold what its model gives against the reference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError
from onnxbuild.core.step import (
    COMPILER,
    CXX_HEADER,
    HEADERS,
    OPTIONAL,
    PROGRAM,
    Outcome,
    StepContext,
    StepKind,
)
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE
from onnxbuild.onnxkit.cpp.content import MODEL, names_of
from onnxbuild.onnxkit.cpp.own_test import (
    BuildFailedError,
    compile_test,
    find_tools,
    run_test,
)
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.packages.tested import check_own, outcome_of, refused, skipped

_FIX = "compile the package as its README.md says, and run `build/{program}`"


@dataclass(frozen=True, slots=True)
class RunCppParams:
    """Parameters of a package's run.

    Attributes:
        subject: What is judged, for messages.
        recipe: Name of the recipe.
        variant: Name of the variant.
        tolerances: The variant's.
        headers: The files of the folder of ONNX Runtime's headers; None for those that are installed.
    """

    subject: str
    recipe: str
    variant: str
    tolerances: VariantTolerances
    headers: Entrypoint | None = None


def run(context: StepContext) -> Outcome:
    """Write report.json; an output out of its tolerance is a finding. A package that can't be compiled here is skipped.

    Raises:
        StepError: The package is damaged or of another variant, does not compile, or its test dies.
    """
    params: RunCppParams = context.params
    package, subject = context.input("package"), params.subject
    program = names_of(params.recipe, params.variant).program
    names = check_own(
        context,
        params.tolerances,
        subject=subject,
        manifest=f"{MODEL}/{MANIFEST_FILE}",
        recipe=params.recipe,
        variant=params.variant,
    )
    tools = find_tools(_headers(context))
    if isinstance(tools, str):
        return skipped(context, subject, tools)
    try:
        phase("compiling its test")
        compiled = compile_test(package, program, tools, context.scratch)
    except BuildFailedError as error:
        raise StepError(
            f"{subject} does not compile: {error}",
            where=context.where,
            fix="see the step's log (`onnxbuild log`)",
        ) from error
    phase("running its test")
    test = run_test(compiled, package, context.scratch)
    if test.is_complete and test.outputs.keys() != names:
        raise refused(f"{subject} ran other golden points than it holds", context)
    by = "CMake" if tools.cmake else "the compiler alone"
    return outcome_of(
        test,
        context,
        params.tolerances,
        subject=subject,
        command=f"{program}, compiled with {by}",
        fix=_FIX.format(program=program),
        manifest=package / MODEL / MANIFEST_FILE,
    )


def _headers(context: StepContext) -> Path | None:
    """The folder of the headers: the recipe's, else what is installed."""
    params: RunCppParams = context.params
    if params.headers is None:
        return context.place(HEADERS)
    files = [path for _, path in context.files(params.headers)]
    return next((path.parent for path in files if path.name == CXX_HEADER), None)


KIND = StepKind(
    name="run-cpp",
    version=5,
    params=RunCppParams,
    inputs=("package", "reference"),
    outputs={"report": "report"},
    toolchain=(
        "numpy",
        "onnxruntime",
        f"{COMPILER}{OPTIONAL}",
        f"{PROGRAM}cmake>{OPTIONAL}",
        f"{HEADERS}{OPTIONAL}",
    ),
    run=run,
    host_bound=True,
    entrypoints=lambda params: () if params.headers is None else (params.headers,),
)
