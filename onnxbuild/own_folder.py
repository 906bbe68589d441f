"""The folder of this package, computed in this one place."""

import os
from functools import lru_cache
from pathlib import Path

OWN_FOLDER = str(Path(__file__).absolute().parent)
"""The package's folder, as it is named."""

REAL_OWN_FOLDER = str(Path(OWN_FOLDER).resolve())
"""The package's folder, links resolved."""

IMPORT_ROOT = str(Path(REAL_OWN_FOLDER).parent)
"""Folder that a fresh interpreter needs on its import path to import this same package."""


@lru_cache(maxsize=4096)
def own_module_of(file: str) -> str:
    """Return the last name of this package's module that a file is; empty if it is none of them.

    Args:
        file: As a code object names it.
    """
    return Path(file).stem if file.startswith(f"{OWN_FOLDER}{os.sep}") else ""


def start_of(module: str, *arguments: str) -> list[str]:
    """Return what follows `python` to run `main` of a module of this very onnxbuild, however it was found.

    Args:
        module: `processes.fork_server`.
        arguments: What `main` finds in sys.argv from 1 on.
    """
    program = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[-1])\n"
        f"import onnxbuild.{module}\n"
        "sys.path.remove(sys.argv[-1])\n"
        f"onnxbuild.{module}.main()\n"
    )
    return ["-c", program, *arguments, IMPORT_ROOT]
