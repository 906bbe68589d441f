"""Run the test that a wheel holds, in a Python of its own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.onnxkit.packages.golden import GOLDEN
from onnxbuild.onnxkit.wheels.archive import unpack_wheel

NOT_HERE = 3
"""The test's exit code where the model can't be loaded."""

_START = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True, slots=True)
class OwnTest:
    """What became of it.

    Attributes:
        code: Exit code.
        said: The last line that it printed.
        golden: Its golden points, in the form of a reference.
        outputs: Folder of what its model gives: one .npz a point; may be missing.
    """

    code: int
    said: str
    golden: Path
    outputs: Path


def run_own_test(wheel: Path, package: str, scratch: Path) -> OwnTest:
    """Unpack a wheel as an installer does, and run `python -m PACKAGE --outputs FOLDER`.

    Args:
        wheel: The file.
        package: What Python imports.
        scratch: A folder to write to.

    Raises:
        WheelError: The wheel is damaged.
    """
    import subprocess

    site, outputs = scratch / "site", scratch / "outputs"
    unpack_wheel(wheel, site)
    done = subprocess.run(
        [sys.executable, "-B", "-c", _START, site, package, "--outputs", outputs],
        cwd=scratch,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    printed = done.stderr.strip() or done.stdout.strip() or "it prints nothing"
    return OwnTest(done.returncode, printed.splitlines()[-1], site / package / GOLDEN, outputs)
