"""Compile a C++ package as its user would, and run the test in it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.step import CXX_HEADER
from onnxbuild.onnxkit.cpp.content import MODEL
from onnxbuild.onnxkit.frameworks import onnxruntime
from onnxbuild.onnxkit.host.compiler import compiler_path
from onnxbuild.onnxkit.packages.package_run import OwnTest, run_own_test

_LIBRARIES = ("libonnxruntime.so.*", "libonnxruntime.*.dylib")
_NO_COMPILER = "there is no C++ compiler (`apt-get install g++`)"
_NO_HEADERS = (
    "ONNX Runtime's C++ headers are not here, and its Python wheel has none: `bash fetch_headers.sh` in "
    "the package gets them; or export ORT_INCLUDE_DIR, install libonnxruntime-dev, or write `packages: {cpp: {headers: FOLDER}}`"
)
_NO_LIBRARY = "the installed ONNX Runtime has no library that a program can be linked with"


class BuildFailedError(ValueError):
    """The compiler, or CMake, refuses the package; the message is its first error."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools that compile a package.

    Attributes:
        compiler: Path of the C++ compiler.
        cmake: Path of CMake; empty to run the compiler alone.
        generator: CMake's generator: `Ninja` or `Unix Makefiles`.
        headers: Folder of ONNX Runtime's headers.
        library: Path of ONNX Runtime's library.
    """

    compiler: str
    cmake: str
    generator: str
    headers: Path
    library: Path


def find_tools(headers: Path | None) -> Tools | str:
    """Return what compiles a package here, or the sentence that says what is missing.

    Args:
        headers: The folder of ONNX Runtime's headers; None if there is none.
    """
    compiler = compiler_path()
    if not compiler:
        return _NO_COMPILER
    if headers is None or not (headers / CXX_HEADER).is_file():
        return _NO_HEADERS
    library = _library()
    if library is None:
        return _NO_LIBRARY
    generators = {"ninja": "Ninja", "make": "Unix Makefiles"}
    generator = next((name for tool, name in generators.items() if shutil.which(tool)), "")
    cmake = shutil.which("cmake") or ""
    return Tools(compiler, cmake if generator else "", generator, headers, library)


def compile_test(package: Path, program: str, tools: Tools, scratch: Path) -> Path:
    """Compile a package's test; return the program.

    Args:
        package: Its folder, which is only read.
        tools: From `find_tools`.

    Raises:
        BuildFailedError: It does not compile.
    """
    library = _linked(tools.library, scratch / "lib")
    build = scratch / "build"
    if tools.cmake:
        given = {
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_CXX_COMPILER": tools.compiler,
            "ORT_INCLUDE_DIR": tools.headers,
            "ORT_LIBRARY": library,
        }
        defined = [f"-D{name}={value}" for name, value in given.items()]
        _run([tools.cmake, "-S", package, "-B", build, "-G", tools.generator, *defined])
        _run([tools.cmake, "--build", build])
        return build / program
    build.mkdir()
    (include,) = (package / "include").iterdir()
    folders = (f"-I{tools.headers}", f"-I{include}")
    options = ("-std=c++17", "-O2", f"-Wl,-rpath,{library.parent}", "-pthread")
    files = (package / "main.cpp", library)
    _run([tools.compiler, *folders, *options, *files, "-o", build / program])
    return build / program


def run_test(program: Path, package: Path, scratch: Path) -> OwnTest:
    """Run a compiled test."""
    outputs = scratch / "outputs"
    model = _real(package / MODEL, scratch)
    command = (program, "--package", package, "--model", model, "--outputs", outputs)
    return run_own_test(command, scratch, outputs)


def _real(model: Path, scratch: Path) -> Path:
    """The model's folder; a copy of it where its files are links, whose weights ONNX Runtime refuses."""
    if not any(path.is_symlink() for path in model.rglob("*")):
        return model
    return shutil.copytree(model, scratch / MODEL)


def _library() -> Path | None:
    folder = Path(onnxruntime.__file__).parent / "capi"
    found = [path for pattern in _LIBRARIES for path in sorted(folder.glob(pattern))]
    return found[0] if found else None


def _linked(library: Path, folder: Path) -> Path:
    """The library under the names that a linker and a loader look for, with the providers next to it."""
    folder.mkdir()
    for each in library.parent.iterdir():
        if ".so" in each.name or each.suffix == ".dylib":
            (folder / each.name).symlink_to(each)
    if library.suffix == ".dylib":
        return folder / library.name
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (folder / name).symlink_to(library)
    return folder / "libonnxruntime.so"


def _run(command: Sequence[str | Path]) -> None:
    import subprocess

    done = subprocess.run(
        [*command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    print(done.stdout, end="")  # the step's log
    if done.returncode:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        raise BuildFailedError((errors or lines or [f"it ends with {done.returncode}"])[0])
