"""Explain to people what a step lacks where a member of its toolchain is missing."""

from __future__ import annotations

from collections.abc import Iterable

from onnxbuild.core.ports import Missing
from onnxbuild.core.step import COMPILER, COMPILERS, GPU, HEADERS, PROGRAM


def missing_member(name: str, programs: Iterable[str], extra: str = "") -> Missing:
    """Name a missing member of a toolchain, and what to do.

    Args:
        name: As in a kind's `toolchain`.
        programs: Folders that steps find programs in.
        extra: The optional extra of this program that brings a package, with the others that the same
            steps need; empty where none does.
    """
    if name == COMPILER:
        return Missing(
            f"a C++ compiler; there is no {' and no '.join(COMPILERS)} in {', '.join(programs)}",
            fix="install one (`apt-get install g++`), or leave out what needs it",
        )
    if name == GPU:
        return Missing(
            "an NVIDIA GPU with its driver, and TensorRT (libnvinfer): one of them is not on this "
            "machine",
            fix="run `onnxbuild doctor` to see which, or leave out what needs it",
        )
    if name == HEADERS:
        return Missing(
            "ONNX Runtime's C++ headers, which are not here",
            fix="install libonnxruntime-dev, or `export ORT_INCLUDE_DIR=FOLDER`",
        )
    if name.startswith(PROGRAM):
        program = name[len(PROGRAM) : -1]
        what = f"the program '{program}'; there is none in {', '.join(programs)}"
        return Missing(what, fix=f"install it (`apt-get install {program}`)")
    fix = f"pip install 'onnxbuild[{extra}]'" if extra else f"pip install {name}"
    return Missing(f"the package '{name}', which is not installed", fix=fix)
