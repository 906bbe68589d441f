"""Measure a model of real size: peak memory and time of each step, bytes on disk and in the store.

A GPT-2 with the widths of GPT-2 large, as many layers as the size asks for, and seeded weights goes
through every mode, one step at a time, on short sequences: memory is what is measured. Peaks are
the kernel's of each step's process, mapped files included, as the run's own events report them.

    python -m benchmarks.large_model [--gib 3] [--modes fp32 fp16 dynamic ...] [--only STEP ...]
        [--folder build/large_model] [--memory 24GiB] [--keep] [--json FILE]

The folder takes about ten times the model. With --keep it is left there, and a second run of the
same size goes on where the first was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.large_project import MODES, layers_of, write_project
from benchmarks.side_by_side import machine
from benchmarks.step_costs import DiskUse, StepCost, costs_of, disk_use, exported_bytes

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Make the project, run it, report what each step took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=3.0, help="of fp32 weights, about")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--only", nargs="*", default=[], help="as `onnxbuild run --only`")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "large_model")
    parser.add_argument("--memory", default="24GiB", help="as `onnxbuild run --memory`")
    parser.add_argument("--timeout", default="7200", help="as `onnxbuild run --timeout`")
    parser.add_argument(
        "--keep", action="store_true", help="leave the project and its store there"
    )
    parser.add_argument("--json", type=Path, help="write what was measured to this file, too")
    arguments = parser.parse_args()
    layers = layers_of(arguments.gib)
    recipe = write_project(arguments.folder, layers, arguments.modes)
    store = arguments.folder / "artifacts"
    print(f"{machine()}; GPT-2 large's widths, {layers} layers", flush=True)
    try:
        limits = ["--memory", arguments.memory, "--timeout", arguments.timeout]
        only = [word for name in arguments.only for word in ("--only", name)]
        code, wall_s = run_recipe(recipe, [*limits, *only])
        costs = costs_of(store)
        model_bytes = exported_bytes(store)
        disk = disk_use(store)
        show(costs, model_bytes, disk)
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        print(f"{wall_s:.0f} s in all; the largest process took {_gib(largest)}")
        if arguments.json:
            found = {
                "machine": machine(),
                "layers": layers,
                "model_bytes": model_bytes,
                "wall_s": round(wall_s, 1),
                "largest_process_bytes": largest,
                "disk": asdict(disk),
                "steps": [asdict(each) for each in costs],
            }
            arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    finally:
        if not arguments.keep:
            shutil.rmtree(arguments.folder, ignore_errors=True)
    sys.exit(code)


def run_recipe(recipe: Path, options: Sequence[str]) -> tuple[int, float]:
    """Run one step at a time; the exit code, and the wall time in seconds."""
    command = [
        *(sys.executable, "-m", "onnxbuild", "run", recipe.name, "--jobs", "1"),
        *("--keep-going", *options),
    ]
    started_s = time.perf_counter()
    done = subprocess.run(
        command, cwd=recipe.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    return done.returncode, time.perf_counter() - started_s


def show(costs: Sequence[StepCost], model_bytes: int, disk: DiskUse) -> None:
    """A table of steps, and where the bytes are."""
    print(f"the model is {_gib(model_bytes)} in fp32")
    print(f"{'step':<28}{'time':>8}{'peak':>12}{'of the model':>14}")
    for each in costs:
        if each.failure:
            print(f"{each.step:<28}  FAILED: {each.failure}")
        else:
            ratio = each.peak_bytes / model_bytes if model_bytes else 0.0
            print(
                f"{each.step:<28}{each.wall_s:>6.0f} s{_gib(each.peak_bytes):>12}{ratio:>12.2f} x"
            )
    print(
        f"store: {_gib(disk.blobs)}, of which {_gib(disk.models)} distinct models; steps and bundles "
        f"name {_gib(disk.named)} of models; views: {_gib(disk.views)}"
    )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.2f} GiB"


if __name__ == "__main__":
    main()
