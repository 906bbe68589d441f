"""An MLflow of its own, and what it answers for a folder; mlflow_client.py runs in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxbuild.adapters.toolchain.virtual_environments import make_once
from onnxbuild.core.environment import Environment
from tests.environments import INSTALLED, make_venv
from tests.framework_environments import interpreter_of

HERE = Path(__file__).parent
_NO_NETWORK = ("No matching distribution", "Connection", "connection", "Temporary failure", "timed out")  # fmt: skip
_PROGRAMS = {"mlflow": ("mlflow.cli", "cli"), "uvicorn": ("uvicorn.main", "main")}
"""Name -> what it runs: `mlflow models serve` starts uvicorn by its name."""


def install(folder: Path) -> Path:
    """Return an interpreter with MLflow and all that is installed here; without a network the test is skipped.

    MLflow is installed once, where builds keep their environments.
    """
    listed = Environment(requirements=str(HERE / "mlflow.txt"))
    kept = Path(interpreter_of(listed, folder.parent, _make))
    (site,) = kept.parents[1].glob("lib/python3*/site-packages")
    made = make_venv(folder, site, INSTALLED)
    for name, (module, function) in _PROGRAMS.items():
        program = made.with_name(name)
        program.write_text(
            f"#!/bin/sh\nexec '{made}' -c 'from {module} import {function}; {function}()' \"$@\"\n"
        )
        program.chmod(0o755)
    return made


def _make(requirements: str, interpreter: str) -> None:
    """Install the list alone: what is installed here has the rest of what MLflow needs."""

    def fill(folder: str) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--python", f"{folder}/bin/python", "install"]
        quiet = ["-q", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run(
            [*pip, *quiet, "-r", requirements], capture_output=True, text=True, check=False
        )
        if done.returncode and any(each in done.stderr for each in _NO_NETWORK):
            pytest.skip(f"MLflow can't be installed: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr

    make_once(requirements, interpreter, fill, print, final=str(Path(interpreter).parents[1]))


def ask(
    python: Path, models: Sequence[tuple[Path, Mapping[str, np.ndarray]]], scratch: Path
) -> Any:
    """Return what MLflow gives for the inputs of each model: loaded, registered and served.

    Args:
        python: From `install`.
        models: The folder of each, and input -> array.
        scratch: A folder to write to.
    """
    words: list[Path] = []
    for number, (folder, feeds) in enumerate(models):
        points = scratch / f"points-{number}.npz"
        np.savez(points, **feeds)
        words += [folder, points]
    asked = subprocess.run(
        [python, HERE / "mlflow_client.py", scratch, *words],
        capture_output=True,
        text=True,
        timeout=600 * len(models),
        check=False,
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    return json.loads(asked.stdout.splitlines()[-1])
