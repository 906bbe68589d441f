"""Measure the time that observing steps by the kernel adds to a cold build.

Builds alternate between observed and not observed. In the second the filter can't be installed, as in
some containers, and only Python's own watch is at work. The store is empty at each run; the disk's
cache is warm for both.

    python benchmarks/kernel_watch.py [--rounds 5] [--recipe recipes/bert.yaml] [--only STEP ...]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT))

from side_by_side import Sample, machine, median_s, peak_bytes, run_once  # noqa: E402

from tests.attack.no_listener import refuse_listeners  # noqa: E402

TARGET = "1.05 x the time"
OBSERVED, NOT_OBSERVED = "observed", "not observed"
WAYS: dict[str, Callable[[], None] | None] = {OBSERVED: None, NOT_OBSERVED: refuse_listeners}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--recipe", default="recipes/bert.yaml")
    parser.add_argument("--only", nargs="+", default=["fp32/package", "int8/package"])
    arguments = parser.parse_args()
    print(machine())
    samples: dict[str, list[Sample]] = {way: [] for way in WAYS}
    tool = str(Path(sys.executable).parent / "onnxbuild")
    with tempfile.TemporaryDirectory() as temp:
        store = Path(temp) / "store"
        command = [tool, "run", arguments.recipe, "--store", str(store)]
        command += [part for step in arguments.only for part in ("--only", step)]
        for number in range(arguments.rounds):
            for way in list(WAYS)[:: 1 if number % 2 else -1]:
                shutil.rmtree(store, ignore_errors=True)
                samples[way].append(run_once(command, ROOT, before=WAYS[way]))
    for way, taken in samples.items():
        walls = ", ".join(f"{sample.wall_s:.1f}" for sample in taken)
        print(
            f"{way:<12} {median_s(taken):6.1f} s ({walls}), largest process {peak_bytes(taken) / 2**20:.0f} MiB"
        )
    ratio = median_s(samples[OBSERVED]) / median_s(samples[NOT_OBSERVED])
    print(f"{OBSERVED} takes {ratio:.3f} x the time of {NOT_OBSERVED} (target: at most {TARGET})")


if __name__ == "__main__":
    main()
