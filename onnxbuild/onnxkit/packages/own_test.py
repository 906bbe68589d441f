"""The test that a Python package of a model holds: golden inputs, bounds, `python -m PACKAGE`; and its run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.accuracy.judged_outputs import bounds_at
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.accuracy.verdict import Bounds
from onnxbuild.onnxkit.data.array_files import read_arrays
from onnxbuild.onnxkit.data.reference_files import POINTS_FILE, read_points, read_reference
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.loaders.script import golden_test_script
from onnxbuild.onnxkit.packages.golden import GOLDEN, golden_points

if TYPE_CHECKING:
    import numpy as np

NOT_HERE = 3
"""The test's exit code where the model can't be loaded."""

TOLERANCES_FILE = "tolerances.json"

_START = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True, slots=True)
class OwnTest:
    """Result of a package's own test.

    Attributes:
        code: Exit code.
        said: The last line that it printed.
        outputs: Golden point -> output -> array; empty if it wrote none.
    """

    code: int
    said: str
    outputs: dict[str, dict[str, np.ndarray]]

    @property
    def is_complete(self) -> bool:
        """Whether the test ran to its end and wrote the model's outputs."""
        return self.code in (0, 1) and bool(self.outputs)


def own_test_files(reference: Path, tolerances: VariantTolerances) -> dict[str, Path | bytes]:
    """Return name in the package -> file, or content: golden inputs and outputs, bounds, __main__.py.

    Args:
        reference: Golden inputs, and what the original gives.
        tolerances: The variant's.
    """
    points = golden_points(reference)
    listed = [{"name": each.name, "sizes": dict(each.sizes), "file": each.file} for each in points]
    bounds = _widest_bounds(reference, {each.name for each in points}, tolerances)
    return {
        **{f"{GOLDEN}/{each.file}": reference / each.file for each in points},
        f"{GOLDEN}/{POINTS_FILE}": _json(listed),
        f"{GOLDEN}/{TOLERANCES_FILE}": _json(bounds),
        "__main__.py": golden_test_script().encode(),
    }


def run_own_test(site: Path, package: str, scratch: Path) -> OwnTest:
    """Run `python -m PACKAGE --outputs FOLDER` in a process of its own.

    Args:
        site: The folder that has the package.
        package: What Python imports.
        scratch: A folder to write to.
    """
    phase("running the package's own test")
    import subprocess

    outputs = scratch / "outputs"
    command: Sequence[Path | str] = (
        sys.executable, "-B", "-c", _START, site, package, "--outputs", outputs,
    )  # fmt: skip
    done = subprocess.run(
        command, cwd=scratch, capture_output=True, text=True, errors="replace", check=False
    )
    printed = done.stderr.strip() or done.stdout.strip() or "it prints nothing"
    found = _written(outputs, site / package / GOLDEN)
    return OwnTest(done.returncode, printed.splitlines()[-1], found)


def _written(outputs: Path, golden: Path) -> dict[str, dict[str, np.ndarray]]:
    """Golden point -> output -> array; empty if the test did not write all of them, since it died."""
    if not outputs.is_dir():
        return {}
    points = read_points(golden)
    try:
        return {each.name: read_arrays(outputs / each.file) for each in points}
    except (OSError, ValueError):
        return {}


def _widest_bounds(
    reference: Path, names: set[str], tolerances: VariantTolerances
) -> dict[str, Any]:
    """Return output -> bounds that hold at all of some points."""
    widest: dict[str, Bounds] = {}
    for point in read_reference(reference):
        for name in point.outputs if point.name in names else ():
            bounds = bounds_at(point, name, tolerances)
            known = widest.setdefault(name, bounds)
            widest[name] = max(known, bounds, key=lambda each: each.atol or 0.0)
    return {name: to_json(bounds) for name, bounds in widest.items()}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
