"""Measure one edited source file among many: it should cost that file's own steps, and little besides.

The same edits are made in a small project and in large ones, in turn. A comment changes nothing,
so its cost is the decision's alone. Other code that gives the same model runs the three steps that
load it, for real; what follows them is cut off. `over` is what the many other steps add: the median
of what a run took longer than that of the small project right before it.

    python benchmarks/one_leaf.py [--steps 8 1000] [--rounds 7]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from many_steps import MODEL, Project, build_project, with_bytecode
from side_by_side import Sample, machine, median_s, peak_bytes, run_once

SETTLED_S = 0.05  # longer than a clock tick: the edit is seen as one, and the run leaves its note
TARGET_S = 0.5
_count = itertools.count(1)


def nothing(project: Project) -> None:
    """Leave all as it is."""


def comment(project: Project) -> None:
    """Change how a source file looks."""
    path = project.source()
    path.write_text(f"{path.read_text().partition('#')[0]}# edit {next(_count)}\n")


def code(project: Project) -> None:
    """Change what a source file says, and not what it does."""
    project.source().write_text(MODEL.format(width=1) + f"\n\nEDIT = {next(_count)}\n")


EDITS: dict[str, Callable[[Project], None]] = {
    "nothing": nothing,
    "a comment": comment,
    "other code": code,
}


def measure(project: Project, edit: Callable[[Project], None]) -> Sample:
    """One run after an edit."""
    edit(project)
    time.sleep(SETTLED_S)
    return run_once(project.command)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[8, 1_000])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temp:
        with_bytecode(Path(temp) / "bytecode")
        projects = [build_project(Path(temp) / str(n), n) for n in sorted(arguments.steps)]
        samples: dict[tuple[str, str], list[Sample]] = {}
        for project in projects:  # the stand-ins of that file's steps become real results
            for edit in (code, comment, nothing):
                measure(project, edit)
        for _ in range(arguments.rounds):
            for name, edit in EDITS.items():
                for project in projects:
                    taken = measure(project, edit)
                    samples.setdefault((name, project.name), []).append(taken)
        base = [run_once([sys.executable, "-c", "pass"]) for _ in range(arguments.rounds)]
    print(f"{'edited':<12}{'among':>14}{'median':>11}{'over':>10}{'peak':>11}")
    print(f"{'':<12}{'python':>14}{median_s(base) * 1e3:>8.0f} ms")
    for (name, among), taken in samples.items():
        pairs = zip(taken, samples[name, projects[0].name], strict=True)
        over_s = statistics.median(one.wall_s - other.wall_s for one, other in pairs)
        print(
            f"{name:<12}{among:>14}{median_s(taken) * 1e3:>8.0f} ms{over_s * 1e3:>7.0f} ms"
            f"{peak_bytes(taken) / 2**20:>7.0f} MiB"
        )
    print(f"target: `a comment` and `over` well under {TARGET_S * 1e3:.0f} ms at 1,000 steps")


if __name__ == "__main__":
    main()
