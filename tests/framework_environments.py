"""The environments of frameworks, made once by the project's own lists, kept where builds keep them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.environments import Environments
from onnxbuild.adapters.toolchain.virtual_environments import make_environment
from onnxbuild.core.environment import BUILT_IN, Environment
from onnxbuild.own_folder import OWN_FOLDER
from tests.fork_servers import command


def _make(requirements: str, interpreter: str) -> None:
    make_environment(requirements, interpreter, print, compiled=True)


def interpreter_of(
    environment: Environment, folder: Path, make: Callable[[str, str], None] = _make
) -> str:
    """Its interpreter; the environment is made if it is not there: about a minute.

    Args:
        environment: Of a list that comes with the project.
        folder: For a file of this function's own.
        make: Takes the list and the interpreter that is to be made.
    """
    index = Index(folder / "environments.db")
    try:
        known = Environments(StatCache(index), lambda path: path.replace(BUILT_IN, OWN_FOLDER))
        path = known.interpreter(environment)
        if known.is_missing(environment):
            make(known.requirements(environment), path)
        return path
    finally:
        index.close()


def onnxbuild(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own."""
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
