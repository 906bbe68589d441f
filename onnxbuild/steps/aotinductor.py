"""Compile an exported program to machine code for this CPU: an AOTInductor package."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onnxbuild.core.step import COMPILER, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.host.made_for import this_instruction_set
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.programs.aotinductor import compile_package
from onnxbuild.onnxkit.programs.artifact_file import read_description, write_description


@dataclass(frozen=True, slots=True)
class AotInductorOptions:
    """Options of the compilation; there is nothing to choose yet."""


@dataclass(frozen=True, slots=True)
class AotInductorParams:
    """Parameters of a compilation."""

    options: AotInductorOptions


def run(context: StepContext) -> Outcome:
    """Write model.pt2 and program.json.

    Raises:
        StepError: There is no C++ compiler, or it can't take the program.
    """
    source = context.input("program")
    exported = read_description(source)
    compiled = replace(exported, format="aotinductor", made_for=this_instruction_set())
    folder = context.output("program")
    file = folder / compiled.file
    phase("compiling to machine code")
    compile_package(source / exported.file, file, context.scratch, context.where)
    write_description(folder, compiled)
    return Outcome({"size_bytes": file.stat().st_size})


KIND = StepKind(
    name="aotinductor",
    version=3,
    params=AotInductorParams,
    inputs=("program",),
    outputs={"program": "aotinductor"},
    toolchain=("torch", "numpy", COMPILER),
    run=run,
    host_bound=True,
)
