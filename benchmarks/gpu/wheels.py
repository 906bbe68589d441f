"""Wheels that are used without being installed: unpacked into a folder in front of the import path."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

from benchmarks.gpu.parts import PartsError, join

ROOT = Path(__file__).parents[2]


class UnableError(Exception):
    """Nothing can be measured here; the message says why and what to do."""


def unpack_wheels(folder: Path, target: Path) -> list[str]:
    """Unpack all wheels of a folder, those in parts joined first, and return their names.

    Args:
        folder: Wheels, or parts of them with their lists.
        target: A folder that is put in front of the import path.

    Raises:
        UnableError: There is none, or one is for another Python or system.
    """
    wheels = sorted(folder.glob("*.whl"))
    if any(folder.glob("*.parts.json")):
        try:
            wheels += join(folder, target.with_name(f"{target.name}-wheels"))
        except PartsError as error:
            raise UnableError(str(error)) from error
    if not wheels:
        raise UnableError(
            f"{folder} has no wheel and no parts of one; docs/gpu.md says how they are made"
        )
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    for wheel in wheels:
        python = wheel.stem.split("-")[-3]
        if (
            tag not in python.split(".")
            and not python.startswith("py3")
            and "abi3" not in wheel.stem
        ):
            raise UnableError(
                f"{wheel.name} is for {python}, this is {tag}; fix: pip download --python-version {tag[2]}.{tag[3:]}"
            )
        try:
            with zipfile.ZipFile(wheel) as files:
                files.extractall(target)
        except (OSError, zipfile.BadZipFile) as error:
            raise UnableError(
                f"{wheel.name} can't be unpacked: {error}; fix: carry it again"
            ) from error
    return [wheel.name for wheel in wheels]


def run_with(wheels: Path, site: Path) -> int:
    """Start again with the wheels' packages in front of all that are installed."""
    unpack_wheels(wheels, site)
    arguments = iter(sys.argv[1:])
    kept = []
    for argument in arguments:
        if argument == "--wheels":
            next(arguments)
        elif not argument.startswith("--wheels="):
            kept.append(argument)
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(
        os.pathsep
    )
    command = shlex.join(["python", "-m", "benchmarks.gpu", *sys.argv[1:]])
    environment = {**os.environ, "PYTHONPATH": path, "GPU_BENCHMARK_COMMAND": command}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *kept], env=environment, check=False
    ).returncode
