"""Measure the time that observing steps by the kernel adds to a cold build.

Builds alternate between observed and not observed. In the second the filter can't be installed, as in
some containers, and only Python's own watch is at work. With `--other TREE`, the onnxbuild of another
checkout (its .venv, its recipes) takes its turn, too. The store is empty at each run; the disk's cache is
warm for all, and all have their bytecode compiled, as pip does it.

Ratios are medians of the rounds' own ratios, since other work on the machine changes from round to round;
it disturbs CPU time less than wall time.

    python benchmarks/kernel_watch.py [--rounds 5] [--recipe recipes/bert.yaml] [--only STEP ...] [--other TREE]
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT))

from side_by_side import (  # noqa: E402
    Sample,
    machine,
    median_cpu_s,
    median_s,
    peak_bytes,
    run_once,
)

from tests.attack.no_listener import refuse_listeners  # noqa: E402

TARGET = "1.05 x the time"
OBSERVED = "observed"


@dataclass(frozen=True)
class Way:
    """One way to build: the checkout whose onnxbuild does it, and what its process calls first."""

    tree: Path
    tool: Path
    before: Callable[[], None] | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--recipe", default="recipes/bert.yaml")
    parser.add_argument("--only", nargs="+", default=["fp32/package", "int8/package"])
    parser.add_argument("--other", type=Path, metavar="TREE")
    arguments = parser.parse_args()
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    tool = Path(sys.executable).parent / "onnxbuild"
    ways = {OBSERVED: Way(ROOT, tool), "not observed": Way(ROOT, tool, refuse_listeners)}
    if arguments.other is not None:
        other = arguments.other.absolute()
        ways[other.name] = Way(other, other / ".venv/bin/onnxbuild")
    for way in ways.values():
        compileall.compile_dir(way.tree / "onnxbuild", quiet=1)
    samples: dict[str, list[Sample]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as temp:
        store = Path(temp) / "store"
        steps = [part for step in arguments.only for part in ("--only", step)]
        for number in range(arguments.rounds):
            for name in list(ways)[:: 1 if number % 2 else -1]:
                shutil.rmtree(store, ignore_errors=True)
                way = ways[name]
                command = [str(way.tool), "run", arguments.recipe, "--store", str(store), *steps]
                samples[name].append(run_once(command, way.tree, before=way.before))
    for name, taken in samples.items():
        walls = ", ".join(f"{sample.wall_s:.1f}" for sample in taken)
        print(
            f"{name:<12} {median_s(taken):6.1f} s ({walls}), CPU {median_cpu_s(taken):.1f} s, "
            f"largest process {peak_bytes(taken) / 2**20:.0f} MiB"
        )
    for name in list(ways)[1:]:
        wall, cpu = ratios(samples[OBSERVED], samples[name])
        print(
            f"{OBSERVED} takes {wall:.3f} x the time of {name}, {cpu:.3f} x its CPU time "
            f"(target: at most {TARGET})"
        )


def ratios(ours: Sequence[Sample], theirs: Sequence[Sample]) -> tuple[float, float]:
    """Median ratio of the rounds: wall time, CPU time."""
    pairs = list(zip(ours, theirs, strict=True))
    return (
        statistics.median(mine.wall_s / other.wall_s for mine, other in pairs),
        statistics.median(mine.cpu_s / other.cpu_s for mine, other in pairs),
    )


if __name__ == "__main__":
    main()
