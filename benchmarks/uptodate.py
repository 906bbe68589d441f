"""Measure verbs on an up-to-date recipe against starting the interpreter and against other build systems.

The store is filled by an executor that writes small outputs instead of exporting thousands of
models; records, blobs, views, reasons and the command that is measured are the real ones. ninja,
doit, snakemake and dvc, where they are installed, have the same graph with as many source files;
their steps concatenate files. All commands run in turn, in random order within each round.

`whole` is the decision without the short way: of a recipe of which no good run is known, or with
changes. Ratios are of CPU time (user and system), to that of `python -c pass`.

    python benchmarks/uptodate.py [--steps 1 1000 10000] [--rounds 15] [--no-peers]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from many_steps import STEPS_A_COMBINATION, TOOL, Project, build_project, with_bytecode
from peers import PEERS
from side_by_side import interleave, machine, median_cpu_s, median_s, peak_bytes, run_once

TARGETS = {
    "--help": "4 x",
    "run": "4 x",
    "plan": "15 x",
    "lint": "15 x",
    "run, 1,000 steps": "80 ms, 25 MiB",
    "run, 10,000 steps": "200 ms, 25 MiB",
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
        commands |= verbs(build_project(Path(temp) / "recipe", STEPS_A_COMBINATION))
        for steps in arguments.steps:
            project = build_project(Path(temp) / str(steps), steps)
            commands[f"run, {project.name}"] = list(project.command)
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
    base_s = median_cpu_s(samples["python -c pass"])
    print(f"{'command':<26}{'median':>10}{'CPU':>10}{'ratio':>9}{'peak':>11}   target")
    for name, taken in samples.items():
        cpu_s, peak = median_cpu_s(taken), peak_bytes(taken)
        print(
            f"{name:<26}{median_s(taken) * 1e3:>7.1f} ms{cpu_s * 1e3:>7.1f} ms{cpu_s / base_s:>7.1f} x"
            f"{peak / 2**20:>7.1f} MiB   {TARGETS.get(name, '')}"
        )


def verbs(project: Project) -> dict[str, list[str]]:
    """The verbs that look at an up-to-date recipe; name for the table -> command."""
    recipe = str(project.recipe)
    short = {verb: [TOOL, verb, recipe] for verb in ("run", "plan", "lint")}
    return short | {f"{verb}, whole": [TOOL, verb, "--", recipe] for verb in ("plan", "lint")}


if __name__ == "__main__":
    main()
