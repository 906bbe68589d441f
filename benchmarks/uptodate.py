"""How long an up-to-date `onnxbuild run` takes, beside the interpreter itself and other build systems.

The store is filled by an executor that writes small outputs instead of exporting thousands of
models; records, blobs, views, reasons and the command that is measured are the real ones. ninja,
doit, snakemake and dvc, where they are installed, have the same graph with as many source files;
their steps concatenate files. All commands run in turn, in random order within each round.

    python benchmarks/uptodate.py [--steps 1 1000 10000] [--rounds 15] [--no-peers]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from many_steps import TOOL, build_project, with_bytecode
from peers import PEERS
from side_by_side import interleave, machine, median_s, peak_bytes, run_once

TARGETS = {
    "--help": "8 x",
    "1 step": "8 x",
    "1,000 steps": "100 ms, 40 MiB",
    "10,000 steps": "500 ms, 40 MiB",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temp:
        with_bytecode(Path(temp) / "bytecode")
        commands = {"python -c pass": [sys.executable, "-c", "pass"]}
        commands["--help"] = [TOOL, "--help"]
        for steps in arguments.steps:
            project = build_project(Path(temp) / str(steps), steps)
            commands[project.name] = list(project.command)
            for peer in () if arguments.no_peers else PEERS:
                name = f"{peer.name}, {project.name}"
                if steps > peer.steps_max:
                    print(f"{name}: not tried, {peer.steps_max:,} at most")
                    continue
                command = peer.build(Path(temp) / f"{peer.name}{steps}", project.graph)
                if command is None:
                    print(f"{name}: not installed")
                else:
                    commands[name] = command
        for command in commands.values():
            run_once(command)  # bytecode, the disk's cache
        samples = interleave(commands, rounds=arguments.rounds, patience_s=20.0)
    versions = [f"{peer.name} {peer.version()}" for peer in PEERS if peer.executable()]
    print("; ".join(versions) if not arguments.no_peers else "")
    base_s = median_s(samples["python -c pass"])
    print(f"{'command':<26}{'median':>10}{'ratio':>9}{'peak':>11}   target")
    for name, taken in samples.items():
        value_s, peak = median_s(taken), peak_bytes(taken)
        print(
            f"{name:<26}{value_s * 1e3:>7.1f} ms{value_s / base_s:>7.1f} x"
            f"{peak / 2**20:>7.1f} MiB   {TARGETS.get(name, '')}"
        )


if __name__ == "__main__":
    main()
