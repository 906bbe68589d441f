"""Parts of all Python packages of a model: the ONNX Runtime that they require, and a test by golden inputs."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.accuracy.judged_outputs import bounds_at
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.accuracy.verdict import Bounds
from onnxbuild.onnxkit.data.array_files import read_arrays
from onnxbuild.onnxkit.data.reference_files import POINTS_FILE, read_points, read_reference
from onnxbuild.onnxkit.loaders.script import golden_script
from onnxbuild.onnxkit.packages.golden import GOLDEN, golden_points
from onnxbuild.onnxkit.packages.package_run import OwnTest, run_own_test
from onnxbuild.providers import named

RuntimeChoice = Literal["auto", "onnxruntime", "onnxruntime-gpu", "none"]
"""Choices of the ONNX Runtime distribution in a recipe."""

_START = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def runtime_distribution(providers: Iterable[str], choice: str) -> str:
    """Return the distribution of ONNX Runtime that has the providers; empty for none.

    Args:
        providers: Full names, in order of preference.
        choice: A RuntimeChoice: `auto` for the distribution of the first provider that has one of its own,
            `none` to require none: two of them in one environment overwrite each other's files.
    """
    if choice == "none":
        return ""
    if choice != "auto":
        return choice
    return next(filter(None, (named(each).distribution for each in providers)), "onnxruntime")


def python_test_files(reference: Path, tolerances: VariantTolerances) -> dict[str, Path | bytes]:
    """Return name in the package -> file, or content: golden inputs and outputs, bounds, __main__.py."""
    points = golden_points(reference)
    listed = [{"name": each.name, "sizes": dict(each.sizes), "file": each.file} for each in points]
    bounds = _widest_bounds(reference, {each.name for each in points}, tolerances)
    return {
        **{f"{GOLDEN}/{each.file}": reference / each.file for each in points},
        f"{GOLDEN}/{POINTS_FILE}": _json(listed),
        f"{GOLDEN}/tolerances.json": _json(bounds),
        "__main__.py": golden_script().encode(),
    }


def run_python_test(site: Path, package: str, scratch: Path) -> OwnTest:
    """Run `python -m PACKAGE --outputs FOLDER`; `site` is the folder that has the package."""
    outputs = scratch / "outputs"
    command = (sys.executable, "-B", "-c", _START, site, package, "--outputs", outputs)
    golden = site / package / GOLDEN
    return run_own_test(
        command,
        scratch,
        outputs,
        lambda folder: {e.name: read_arrays(folder / e.file) for e in read_points(golden)},
    )


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
