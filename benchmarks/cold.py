"""A cold build of MiniLM (fp32 + int8) compared with one plain script that does the same work.

Both run in turn, in random order; wall time and the peak memory of the largest process are given
as ratios. The store is empty at each run; the disk's cache is warm for both.

    python benchmarks/cold.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from side_by_side import Sample, machine, median_s, peak_bytes, run_once

ROOT = Path(__file__).parent.parent
TARGET = "1.15 x the time, 1.00 x the memory"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(machine())
    plain: list[Sample] = []
    ours: list[Sample] = []
    tool = str(Path(sys.executable).parent / "onnxbuild")
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        script = [sys.executable, str(ROOT / "benchmarks/plain_script.py"), str(folder / "plain")]
        build = [
            tool, "run", "recipes/bert.yaml", "--store", str(folder / "store"),
            "--only", "fp32/package", "--only", "int8/package",
        ]  # fmt: skip
        for number in range(arguments.rounds):
            for which in ("plain", "ours") if number % 2 else ("ours", "plain"):
                shutil.rmtree(folder / which, ignore_errors=True)
                shutil.rmtree(folder / "store", ignore_errors=True)
                if which == "plain":
                    plain.append(run_once(script, ROOT))
                else:
                    ours.append(run_once(build, ROOT))
    time_ratio = median_s(ours) / median_s(plain)
    memory_ratio = peak_bytes(ours) / peak_bytes(plain)
    for name, samples in (("plain script", plain), ("onnxbuild run", ours)):
        walls = ", ".join(f"{sample.wall_s:.1f}" for sample in samples)
        print(
            f"{name:<14} {median_s(samples):6.1f} s ({walls}), "
            f"largest process {peak_bytes(samples) / 2**20:.0f} MiB"
        )
    print(
        f"ratio          {time_ratio:6.2f} x time, {memory_ratio:.2f} x memory (target {TARGET})"
    )


if __name__ == "__main__":
    main()
