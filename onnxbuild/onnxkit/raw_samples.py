"""The times of single runs, kept beside a benchmark's figures for whoever compares them later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnxbuild.onnxkit.latency import Turns

SAMPLES_FILE = "samples.npz"


def write_samples(folder: Path, measured: Mapping[str, Mapping[str, Turns]]) -> None:
    """Write SAMPLES_FILE: for each point and runner, all runs in nanoseconds, and the turns' sizes.

    Args:
        folder: Where to.
        measured: Point -> runner -> its turns.
    """
    import numpy as np

    arrays = {}
    for point, runners in measured.items():
        for name, turns in runners.items():
            arrays[f"{point}/{name}/runs_ns"] = np.asarray(
                [run for turn in turns for run in turn], np.int64
            )
            arrays[f"{point}/{name}/sizes"] = np.asarray([len(turn) for turn in turns], np.int32)
    np.savez(folder / SAMPLES_FILE, allow_pickle=False, **arrays)


def read_samples(folder: Path, point: str, name: str) -> list[list[int]]:
    """A runner's turns at a point.

    Raises:
        KeyError: It was not measured there.
    """
    import numpy as np

    with np.load(folder / SAMPLES_FILE, allow_pickle=False) as arrays:
        runs = arrays[f"{point}/{name}/runs_ns"]
        ends = np.cumsum(arrays[f"{point}/{name}/sizes"])
    return [turn.tolist() for turn in np.split(runs, ends[:-1])]
