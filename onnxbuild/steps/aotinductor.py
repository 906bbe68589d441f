"""Compile an exported program to machine code for this CPU: an AOTInductor package."""

import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import COMPILER, COMPILERS, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.export.torch_wrapping import quiet
from onnxbuild.onnxkit.host.compiler import compiler_path
from onnxbuild.onnxkit.host.made_for import this_instruction_set
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.programs.archives import rewrite_archive
from onnxbuild.onnxkit.programs.artifact_file import read_description, write_description
from onnxbuild.onnxkit.programs.programs import PROGRAM_ERRORS
from onnxbuild.onnxkit.sessions.open import first_line

_SOURCES = (".cpp", ".h")

_PLANNED_THREADS = 8
"""Loops are split up for so many, whatever this machine has; how many run, the program asks OpenMP.
Else buffers of reductions have a place for each of this machine's threads and are written beyond
their end on a machine with more."""


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


def find_compiler(where: str) -> str:
    """Path of the C++ compiler.

    Raises:
        StepError: There is none on PATH.
    """
    found = compiler_path()
    if found:
        return found
    raise StepError(
        f"AOTInductor needs a C++ compiler; there is no {' and no '.join(COMPILERS)} where steps "
        "look: next to Python, in /usr/local/bin, /usr/bin and /bin",
        where=where,
        fix="install one (`apt-get install g++`), or leave `aotinductor` out of `formats`",
    )


def compile_package(program: Path, target: Path, scratch: Path, where: str) -> None:
    """Compile a .pt2 file of torch.export to an AOTInductor package for this CPU.

    Equal programs give equal bytes with the same torch, compiler and CPU: line tables, which hold
    paths, are left out, other paths are mapped to names, and the generated sources, which tell the
    compiler's command line, are not packed.

    Args:
        target: The package to write.
        scratch: A folder for generated code and the compiler's files.
        where: `recipe:step`, for messages.

    Raises:
        StepError: There is no compiler, torch can't read the program, or the compilation fails.
    """
    import torch
    from torch._inductor import aoti_compile_and_package
    from torch._inductor.runtime.cache_dir_utils import cache_dir
    from torch._inductor.utils import fresh_cache

    found = find_compiler(where)
    raw = scratch / "raw.pt2"
    try:
        with fresh_cache(dir=str(scratch)), quiet():
            names = {Path(cache_dir()): "build", Path(torch.__file__).parent: "torch"}
            compiler = _compiler_without_paths(found, scratch / "compiler", names)
            aoti_compile_and_package(
                torch.export.load(str(program)),
                package_path=str(raw),
                inductor_configs={
                    "cpp.cxx": (str(compiler),),
                    "compile_threads": 1,
                    "cpp.threads": _PLANNED_THREADS,
                    "cpp.dynamic_threads": True,
                    "aot_inductor.enable_line_tables": False,
                    "aot_inductor.precompile_headers": False,  # they would be in a shared folder
                    "aot_inductor.model_name_for_generated_files": "model",
                },
            )
    except (*PROGRAM_ERRORS, OSError) as error:
        raise StepError(
            f"AOTInductor can't compile the exported program: {type(error).__name__}: "
            f"{_message_of(error)}",
            where=where,
            fix="see the step's log (`onnxbuild log`); leave `aotinductor` out of `formats` if the "
            "compiler can't take the model",
        ) from error
    rewrite_archive(raw, target, keep=lambda name: not name.endswith(_SOURCES))
    raw.unlink()


def _compiler_without_paths(compiler: str, script: Path, names: Mapping[Path, str]) -> Path:
    """The compiler as a program that names no folder of this machine in what it writes.

    TorchInductor takes no flags of its own; `-ffile-prefix-map` also serves __FILE__ in messages.

    Args:
        script: Where to write it.
        names: Folder -> what it is called instead.
    """
    maps = " ".join(f"'-ffile-prefix-map={folder}={name}'" for folder, name in names.items())
    script.write_text(f"#!/bin/sh\nexec '{compiler}' {maps} \"$@\"\n", encoding="utf-8")
    script.chmod(stat.S_IRWXU)
    return script


def _message_of(error: BaseException) -> str:
    """Return the compiler's own first error if there is one, else the exception's first line."""
    errors = [line.strip() for line in str(error).splitlines() if " error: " in line]
    return errors[0].partition(" error: ")[2] if errors else first_line(error)


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
