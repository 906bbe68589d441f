"""Run the test that a Node package holds, as npm would."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from onnxbuild.core.environment import Environment
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.node.content import TEST_FILE
from onnxbuild.onnxkit.packages.golden import read_plain_outputs
from onnxbuild.onnxkit.packages.own_test import OwnTest

_MODULES = "node_modules"


def run_own_test(package: Path, environment: Environment, scratch: Path) -> OwnTest:
    """Put a package next to what it depends on, and run `node test.js --outputs FOLDER`.

    Args:
        package: Its folder.
        environment: Where Node and onnxruntime-node are.
        scratch: A folder to write to.
    """
    phase("running the package's own test")
    folder, outputs = scratch / "package", scratch / "outputs"
    # A copy: Node and ONNX Runtime look for other files next to where links lead.
    shutil.copytree(package, folder)
    (folder / _MODULES).symlink_to(Path(environment.folder, _MODULES))
    done = subprocess.run(
        [environment.interpreter, TEST_FILE, "--outputs", outputs],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    printed = done.stderr.strip() or done.stdout.strip() or "it prints nothing"
    try:
        found = read_plain_outputs(outputs)
    except (OSError, ValueError):
        found = {}
    return OwnTest(done.returncode, printed.splitlines()[-1], found)


def runtime_loads(environment: Environment) -> bool:
    """Return whether Node loads onnxruntime-node itself, which has no library for some platforms.

    Args:
        environment: Where both are.
    """
    done = subprocess.run(
        [environment.interpreter, "-e", "require('onnxruntime-node')"],
        cwd=environment.folder,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0
