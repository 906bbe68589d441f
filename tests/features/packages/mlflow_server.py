"""An MLflow of its own, and what it answers for a folder; mlflow_client.py runs in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments import INSTALLED

HERE = Path(__file__).parent
_NO_NETWORK = ("No matching distribution", "Connection", "connection", "Temporary failure", "timed out")  # fmt: skip


def install(folder: Path) -> Path:
    """Return an interpreter with MLflow and all that is installed here; without a network the test is skipped."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    made = folder / "bin" / "python"
    quiet = ["-q", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [made, "-m", "pip", "install", *quiet, "-r", HERE / "mlflow.txt"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and any(each in done.stderr for each in _NO_NETWORK):
        pytest.skip(f"MLflow can't be installed: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "tests.pth").write_text(f"{INSTALLED}\n")
    return made


def ask(python: Path, model: Path, feeds: Mapping[str, np.ndarray], scratch: Path) -> Any:
    """Return what MLflow gives for inputs: loaded, registered and served.

    Args:
        python: From `install`.
        model: The folder.
        feeds: Input -> array.
        scratch: A folder to write to.
    """
    points = scratch / "points.npz"
    np.savez(points, **feeds)
    asked = subprocess.run(
        [python, HERE / "mlflow_client.py", model, points, scratch],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    return json.loads(asked.stdout.splitlines()[-1])
