"""The C++ compiler that a step runs."""

import shutil

from onnxbuild.core.step import COMPILERS


def compiler_path() -> str:
    """Return the first of COMPILERS on this process's PATH; empty if there is none."""
    return next(filter(None, map(shutil.which, COMPILERS)), "")
