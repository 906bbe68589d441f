"""Size of each package next to its bundle, and how long it takes to a session: in processes of their own, in turns.

    onnxbuild run recipes/digits.yaml       with `packages: {wheel: {}, node: {}, cpp: {}, ...}`
    python benchmarks/package_loads.py artifacts/out/digits int8 [--rounds 9] [--servers]

`load` is the call that opens the session, `process` the wall time from the start of the process to its end, both
medians; ratios are to the bundle's load.py in the same run. Node needs `npm install` (done here, in a copy), C++ a
compiler and ORT_INCLUDE_DIR. `oci` is pulled from its layout by `onnxbuild pull`, and then loaded: `load` is both, in one
process. `--servers` also starts MLflow and a Triton core (as the tests do, in environments of their own), and takes the time
from the start of the server until it says that it is ready. No browser is started.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import onnxruntime
from side_by_side import machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the servers are those of the tests

PYTHON = """\
import sys, time
sys.path.insert(0, sys.argv[1])
import onnxruntime
{imported}
t = time.perf_counter()
{call}
print(1e3 * (time.perf_counter() - t))
"""
BUNDLE = PYTHON.format(imported="import load", call="load.load()")
ORT = PYTHON.format(imported="", call="onnxruntime.InferenceSession(sys.argv[1] + '/model.ort')")
NODE = """\
const { load } = await import(process.argv[2] + "/index.js");
const t = performance.now();
await load();
console.log(performance.now() - t);
process.exit(0);
"""
CPP = """\
#include <chrono>
#include <iostream>
#include "HEADER"
int main(int, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  SPACE::Model model(argv[1]);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::cout << took.count() << std::endl;
}
"""
PULLED = """\
import subprocess, sys, tempfile, time
import onnxruntime
with tempfile.TemporaryDirectory() as temp:
    t = time.perf_counter()
    subprocess.run([sys.argv[1], "pull", sys.argv[2], "-o", temp + "/model"], check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, temp + "/model")
    import load
    load.load()
    print(1e3 * (time.perf_counter() - t))
"""
Command = list[str | Path]
Ready = Callable[[], float]
"""Starts a server, waits until it is ready, ends it; returns the milliseconds until it was ready."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="artifacts/out/RECIPE")
    parser.add_argument("bundle", help="int8, int8-pipeline, ...")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--servers", action="store_true", help="start Triton and MLflow, too")
    arguments = parser.parse_args()
    print(machine())
    names = [arguments.bundle, *_packages(arguments.out, arguments.bundle)]
    with tempfile.TemporaryDirectory() as temp:
        folders = {name: arguments.out / name for name in names}
        commands = {name: _command(name, folders[name], Path(temp)) for name in names}
        timed: dict[str, Callable[[], tuple[float, float]]] = {
            name: partial(_timed, command) for name, command in commands.items() if command
        }
        if arguments.servers:
            for name, ready in _servers(folders, Path(temp)).items():
                timed[name] = partial(_until_ready, ready)
        loads: dict[str, list[float]] = {name: [] for name in timed}
        walls: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(arguments.rounds):
            for name in random.sample(list(timed), len(timed)):
                load_ms, wall_ms = timed[name]()
                loads[name].append(load_ms)
                walls[name].append(wall_ms)
    print(
        "| | size, MB | load, ms | ratio | process, ms | ratio |\n|---|---:|---:|---:|---:|---:|"
    )
    for name in names:
        size = sum(path.stat().st_size for path in folders[name].rglob("*") if path.is_file())
        print(f"| {name} | {size / 1e6:.3g} | {_row(name, names[0], loads, walls)} |")


def _packages(out: Path, bundle: str) -> list[str]:
    found = sorted(path.name for path in out.iterdir() if path.name.startswith(f"{bundle}-"))
    return [name for name in found if (out / name / "SHA256SUMS").exists()]


def _command(name: str, folder: Path, temp: Path) -> Command:
    """Return the command that opens a session of a package; empty for servers and browsers."""
    form = name.rpartition("-")[2]
    if form in ("triton", "mlflow", "web"):
        return []
    if form == "oci":
        program = Path(sys.executable).with_name("onnxbuild")
        tag = json.loads((folder / "index.json").read_text())["manifests"][0]["annotations"]
        layout = f"oci:{folder}:{tag['org.opencontainers.image.ref.name']}"
        return [sys.executable, "-c", PULLED, program, layout]
    if form == "node":
        return _node(folder, temp / name)
    if form == "cpp":
        return _cpp(folder, temp / name)
    if form == "mobile":
        return [sys.executable, "-c", ORT, folder]
    if form == "wheel":
        (wheel,) = folder.glob("*.whl")
        site = temp / name
        shutil.unpack_archive(wheel, site, "zip")
        (package,) = (path.parent for path in site.glob("*/load.py"))
        return [sys.executable, "-c", BUNDLE, package]
    return [sys.executable, "-c", BUNDLE, folder]


def _servers(folders: Mapping[str, Path], temp: Path) -> dict[str, Ready]:
    """Return the function that starts each server's package; each server is installed once, in its own environment."""
    from tests.features.packages import mlflow_client, mlflow_server
    from tests.triton import server

    found: dict[str, Ready] = {}
    for name, folder in folders.items():
        scratch = temp / name
        if name.endswith("-mlflow"):
            programs = mlflow_server.install(temp / "mlflow").parent

            def serve(folder: Path = folder, programs: Path = programs) -> float:
                port, start = mlflow_client.free_port(), time.perf_counter()
                process = mlflow_client.serve(folder, port, programs)
                try:
                    mlflow_client.wait(process, f"http://127.0.0.1:{port}/ping")
                    return 1e3 * (time.perf_counter() - start)
                finally:
                    mlflow_client.end(process)

            found[name] = serve
        elif name.endswith("-triton"):
            scratch.mkdir()
            triton = server.install(temp / "triton")

            def start(
                folder: Path = folder, triton: server.Triton = triton, scratch: Path = scratch
            ) -> float:
                started = time.perf_counter()
                with server.serving(triton, folder, scratch) as running:
                    if not running.is_ready:
                        raise SystemExit(running.said()[-2000:])
                    return 1e3 * (time.perf_counter() - started)

            found[name] = start
    return found


def _until_ready(ready: Ready) -> tuple[float, float]:
    """The time to readiness, as the load and as the process."""
    took = ready()
    return took, took


def _node(folder: Path, copy: Path) -> Command:
    if shutil.which("npm") is None:
        return []
    shutil.copytree(folder, copy)
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(
        ["npm", "install", *quiet],
        cwd=copy,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "ONNXRUNTIME_NODE_INSTALL": "skip"},
    )
    script = copy / "load_once.mjs"
    script.write_text(NODE)
    return ["node", script, copy]


def _cpp(folder: Path, build: Path) -> Command:
    headers, compiler = os.environ.get("ORT_INCLUDE_DIR", ""), shutil.which("c++")
    if not headers or compiler is None:
        return []
    build.mkdir()
    (header,) = folder.glob("include/*/model.h")
    text = CPP.replace("HEADER", f"{header.parent.name}/model.h")
    (build / "load.cpp").write_text(text.replace("SPACE", header.parent.name))
    capi = Path(onnxruntime.__file__).parent / "capi"
    library = next(capi.glob("libonnxruntime.so.*"))
    for name in (library.name, "libonnxruntime.so.1"):
        (build / name).symlink_to(library)
    subprocess.run(
        [
            compiler, "-std=c++17", "-O2", "-pthread", f"-I{folder / 'include'}", f"-I{headers}", build / "load.cpp",
            build / library.name, f"-Wl,-rpath,{build}", "-o", build / "load",
        ],
        check=True,
    )  # fmt: skip
    return [build / "load", (folder / "model").absolute()]


def _timed(command: Command) -> tuple[float, float]:
    """Return (load time that the process reports, wall time of the process), in ms."""
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.split()[-1]), 1e3 * (time.perf_counter() - start)


def _row(
    name: str, bundle: str, loads: Mapping[str, list[float]], walls: Mapping[str, list[float]]
) -> str:
    if name not in loads:
        return "- | - | - | -"
    parts = []
    for times in (loads, walls):
        own, base = statistics.median(times[name]), statistics.median(times[bundle])
        parts.append(f"{own:.3g} | {own / base:.2f} x")
    return " | ".join(parts)


if __name__ == "__main__":
    main()
