"""Check the model of scale_model.py against real runs: 1, 2, 4 and 8 workers on this machine, and a slow remote store.

Steps sleep, so that eight workers have something to do on two cores.

    python -m benchmarks.scale_check [--seconds 3] [--steps 32]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.many_steps import TOOL
from benchmarks.scale_model import measured, simulate
from benchmarks.side_by_side import machine
from benchmarks.slow_link import slow_link
from benchmarks.virtual_cluster import Costs
from onnxbuild.building.remote import pull_results
from onnxbuild.building.request import Request, graph_of
from onnxbuild.catalog import CATALOG
from tests.adapters.remote.http_store import serving

MODEL = """\
import time

import torch


def load(number):
    time.sleep({seconds})
    torch.manual_seed(int(number))
    return torch.nn.Linear({width}, {width})
"""
RECIPE = """\
version: 1
name: slow
matrix: {{number: [{numbers}]}}
model: {{entrypoint: "slow.py:load", args: {{number: "{{{{ number }}}}"}}}}
dummy_inputs:
  input: {{dtype: float32, shape: [batch, {width}]}}
dynamic_axes:
  batch: {{min: 1, max: 8, example: 2}}
export: {{exporter: torchscript}}
"""


@dataclass(frozen=True)
class Ran:
    """A run on a cluster.

    Attributes:
        wall_s: From the first step's start to the last one's end.
        start_s: What the first step took longer than the step itself.
        driver_cpu_s: CPU time of the driver, the scheduler in it included.
    """

    wall_s: float
    start_s: float
    driver_cpu_s: float


def write_project(folder: Path, steps: int, seconds: float, width: int = 4) -> Path:
    """Write a project of `steps` exports that sleep; return its recipe."""
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    (folder / "slow.py").write_text(MODEL.format(seconds=seconds, width=width))
    numbers = ", ".join(map(str, range(steps)))
    (folder / "slow.yaml").write_text(RECIPE.format(numbers=numbers, width=width))
    return folder / "slow.yaml"


def run(recipe: Path, workers: int) -> Ran:
    """Build all exports on workers of this machine, one step at a time on each."""
    store = recipe.parent / f"store-{workers}"
    shutil.rmtree(store, ignore_errors=True)
    command = [
        TOOL, "run", str(recipe), "--only", "export", "--no-bench", "--json", "--store", str(store),
        "--executor", f"dask:local?workers={workers}", "--jobs", str(workers),
    ]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started: dict[str, float] = {}
    first = end_s = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            event, now_s = json.loads(line), time.monotonic()
            if event["type"] == "step_started":
                started.setdefault(event["step"], now_s)
            elif event["type"] == "step_finished":
                end_s = now_s
                first = first or now_s - started[event["step"]] - event["wall_s"]
    if running.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(end_s - min(started.values()), first, spent_s)


def check_workers(temp: Path, steps: int, seconds: float) -> None:
    """Print measured and simulated times of 1, 2, 4 and 8 workers."""
    recipe = write_project(temp / "workers", steps, seconds)
    alone = run(recipe, 1)
    request_store = str(recipe.parent / "store-1")
    graph, of_steps = measured([recipe], request_store, only=("export",))
    overhead_s = (
        alone.wall_s - alone.start_s - sum(each.wall_s for each in of_steps.values())
    ) / steps
    costs = Costs(step_s=0.0, round_trip_s=overhead_s, start_s=alone.start_s)
    print(
        f"of one worker: start {alone.start_s:.2f} s, a step's way there and back {overhead_s * 1e3:.0f} ms"
    )
    print("| workers | measured | model | model / measured |\n|---|---:|---:|---:|")
    for workers in (1, 2, 4, 8):
        found = alone if workers == 1 else run(recipe, workers)
        expected = simulate(graph, of_steps, workers, costs)
        ratio = expected.wall_s / found.wall_s
        print(
            f"| {workers} | {found.wall_s:.1f} s | {expected.wall_s:.1f} s | {ratio:.2f} |",
            flush=True,
        )


def check_remote(temp: Path, steps: int) -> None:
    """Print measured and expected times of `cache pull` over links of several kinds."""
    recipe = write_project(temp / "remote", steps, 0.0, width=512)
    key = temp / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    public = temp / "key.pub"
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    os.environ |= {
        "ONNXBUILD_REMOTE_TRUSTED_KEYS": str(public), "ONNXBUILD_REMOTE_SIGN_KEY": str(key),
        "ONNXBUILD_REMOTE_ALLOW_HTTP": "1", "ONNXBUILD_REMOTE_PUSH": "always",
    }  # fmt: skip
    with serving() as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        path = server.url.partition(f":{port}")[2]
        os.environ["ONNXBUILD_REMOTE"] = server.url
        build = [
            "run",
            str(recipe),
            "--no-bench",
            "--wait-uploads",
            "--store",
            str(temp / "built"),
        ]
        subprocess.run([TOOL, *build], check=True, stdout=subprocess.DEVNULL)
        os.environ["ONNXBUILD_REMOTE_PUSH"] = "never"
        size = sum(len(content) for content in server.objects.values())
        results = []
        os.environ["ONNXBUILD_REMOTE"] = server.url
        _pull(recipe, temp / "first")  # what is imported once
        for name, round_trip_s, bytes_s in LINKS:
            with slow_link(port, round_trip_s=round_trip_s, bytes_s=bytes_s) as near:
                os.environ["ONNXBUILD_REMOTE"] = f"http://127.0.0.1:{near}{path}"
                taken_s = min(_pull(recipe, temp / f"{name}-{again}") for again in range(2))
            results.append((name, round_trip_s, bytes_s, taken_s))
    base_s, far_s = results[0][3], results[1][3]
    trips = (far_s - base_s) / results[1][1]
    steps_all = len(graph_of(_request(recipe, temp)).steps)
    print(f"{steps_all} steps, {size / 1e6:.1f} MB, {trips:.0f} round trips one after the other")
    print("| link | measured | model | model / measured |\n|---|---:|---:|---:|")
    for name, round_trip_s, bytes_s, taken_s in results:
        expected = base_s + trips * round_trip_s + (size / bytes_s if bytes_s else 0.0)
        print(f"| {name} | {taken_s:.1f} s | {expected:.1f} s | {expected / taken_s:.2f} |")


def _request(recipe: Path, store: Path) -> Request:
    return Request((recipe,), settings={"benchmark.measure": "false"}, store=str(store))


def _pull(recipe: Path, store: Path) -> float:
    """Return how long it takes to fetch all of a recipe into an empty store, in seconds."""
    began_s = time.monotonic()
    planned, remarks = pull_results(_request(recipe, store), CATALOG)
    taken_s = time.monotonic() - began_s
    if not all(each.hit for each in planned):
        raise SystemExit(f"not all was fetched: {remarks}")
    return taken_s


LINKS = (
    ("loopback", 0.0, 0.0),
    ("100 ms", 0.1, 0.0),
    ("200 ms", 0.2, 0.0),
    ("2 MB/s", 0.0, 2e6),
    ("100 ms, 1 MB/s", 0.1, 1e6),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=32)
    arguments = parser.parse_args()
    print(machine(), sys.platform)
    with tempfile.TemporaryDirectory() as temp:
        check_workers(Path(temp), arguments.steps, arguments.seconds)
        check_remote(Path(temp), arguments.steps // 4)


if __name__ == "__main__":
    main()
