"""An MLflow of its own, and what it answers for a folder; mlflow_client.py runs in it."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.environments import INSTALLED, make_venv
from tests.framework_environments import site_of

HERE = Path(__file__).parent
_PROGRAMS = {"mlflow": ("mlflow.cli", "cli"), "uvicorn": ("uvicorn.main", "main")}
"""Name -> what it runs: `mlflow models serve` starts uvicorn by its name."""


def install(folder: Path) -> Path:
    """Return an interpreter with MLflow and all that is installed here; without a network the test is skipped.

    MLflow is installed once, where builds keep their environments.
    """
    made = make_venv(folder, site_of(HERE / "mlflow.txt", folder.parent), INSTALLED)
    for name, (module, function) in _PROGRAMS.items():
        program = made.with_name(name)
        program.write_text(
            f"#!/bin/sh\nexec '{made}' -c 'from {module} import {function}; {function}()' \"$@\"\n"
        )
        program.chmod(0o755)
    return made


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
