"""The environments of frameworks, made once by the project's own lists, kept where builds keep them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.environments import Environments
from onnxbuild.adapters.toolchain.virtual_environments import make_environment, make_once
from onnxbuild.core.environment import BUILT_IN, Environment
from onnxbuild.own_folder import OWN_FOLDER
from tests.fork_servers import command

_NO_NETWORK = ("No matching distribution", "Connection", "connection", "Temporary failure", "timed out")  # fmt: skip


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


def site_of(requirements: Path, folder: Path) -> Path:
    """The installed packages of a list alone, without those that they require; without a network the test is skipped.

    They are installed once, where builds keep their environments.
    """
    listed = Environment(requirements=str(requirements))
    kept = Path(interpreter_of(listed, folder, _install_alone))
    (site,) = kept.parents[1].glob("lib/python3*/site-packages")
    return site


def _install_alone(requirements: str, interpreter: str) -> None:
    def fill(folder: str) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--python", f"{folder}/bin/python", "install"]
        quiet = ["-q", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run(
            [*pip, *quiet, "-r", requirements], capture_output=True, text=True, check=False
        )
        if done.returncode and any(each in done.stderr for each in _NO_NETWORK):
            last = done.stderr.strip().splitlines()[-1]
            pytest.skip(f"{Path(requirements).name} can't be installed: {last}")
        assert done.returncode == 0, done.stderr

    make_once(requirements, interpreter, fill, print, final=str(Path(interpreter).parents[1]))


def onnxbuild(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own."""
    return subprocess.run(
        command(*arguments), cwd=folder, capture_output=True, text=True, check=False
    )
