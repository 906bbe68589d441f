"""Overhead of a cluster: many small steps by local processes and by the workers of `dask:local`, in turn.

The project has ready-made ONNX models of a few bytes, each with its own steps; stores are empty at each run. Both
executors have the same number of steps at a time.

    python benchmarks/cluster_steps.py [--steps 1000] [--rounds 1] [--workers 2]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side_by_side import machine

TOOL = str(Path(sys.executable).parent / "onnxbuild")
RECIPE = """\
version: 1
name: many
matrix: {{number: [{numbers}]}}
model: {{onnx: "models/m{{{{ number }}}}.onnx"}}
quantization: {{fp32: none}}
benchmark: {{measure: false}}
"""
MODELS = """\
import sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
for n in range(1, int(sys.argv[2]) + 1):
    shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy"]
    weight = numpy_helper.from_array(np.full((4, 4), n, np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="multiply")]
    graph = helper.make_graph(nodes, "g", shape[:1], shape[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    save(model, f"{sys.argv[1]}/m{n}.onnx")
"""


def make_project(folder: Path, models: int) -> None:
    (folder / "models").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    numbers = ", ".join(map(str, range(1, models + 1)))
    (folder / "many.yaml").write_text(RECIPE.format(numbers=numbers))
    command = [sys.executable, "-c", MODELS, str(folder / "models"), str(models)]
    subprocess.run(command, check=True)


def run(folder: Path, executor: str, jobs: int) -> tuple[float, int]:
    """Seconds and steps of a build with an empty store."""
    store = folder / "store"
    shutil.rmtree(store, ignore_errors=True)
    command = [
        TOOL, "run", "many.yaml", "--quiet", "--store", str(store), "--executor", executor,
        "--jobs", str(jobs),
    ]  # fmt: skip
    began_s = time.perf_counter()
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    took_s = time.perf_counter() - began_s
    found = re.search(r"^ok: (\d+) built", done.stdout, re.MULTILINE)
    if found is None:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took_s, int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temp:
        make_project(Path(temp) / "one", 1)
        base_s = {}
        executors = {"local": "local", "dask": f"dask:local?workers={arguments.workers}"}
        for name, executor in executors.items():  # what a run takes besides its steps
            base_s[name], a_model = run(Path(temp) / "one", executor, arguments.workers)
        project = Path(temp) / "many"
        make_project(project, -(-arguments.steps // a_model))
        for _ in range(arguments.rounds):
            per_step_ms = {}
            for name, executor in executors.items():
                took_s, steps = run(project, executor, arguments.workers)
                per_step_ms[name] = (took_s - base_s[name]) / (steps - a_model) * 1000
                print(
                    f"{name:<6} {steps} steps in {took_s:6.1f} s; one model alone takes {base_s[name]:.1f} s; "
                    f"{per_step_ms[name]:.1f} ms a further step"
                )
            print(
                f"ratio  {per_step_ms['dask'] / per_step_ms['local']:.2f} x local execution a step"
            )


if __name__ == "__main__":
    main()
