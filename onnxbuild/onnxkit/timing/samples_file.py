"""The times of single runs, kept next to a benchmark's figures for later comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnxbuild.onnxkit.timing.rounds import Groups

SAMPLES_FILE = "samples.npz"


def write_samples(folder: Path, measured: Mapping[str, Groups]) -> None:
    """Write SAMPLES_FILE: for each point and runner, all runs in nanoseconds, and the turns' sizes.

    Where there are several groups, also how many of the turns are of each.

    Args:
        folder: Where to.
        measured: Point -> for each group, runner -> its turns.
    """
    import numpy as np

    arrays = {}
    for point, groups in measured.items():
        for name in dict.fromkeys(name for group in groups for name in group):
            turns = [turn for group in groups for turn in group.get(name, ())]
            arrays[f"{point}/{name}/runs_ns"] = np.asarray(
                [run for turn in turns for run in turn], np.int64
            )
            arrays[f"{point}/{name}/sizes"] = np.asarray([len(turn) for turn in turns], np.int32)
            if len(groups) > 1:
                counts = [len(group.get(name, ())) for group in groups]
                arrays[f"{point}/{name}/groups"] = np.asarray(counts, np.int32)
    np.savez(folder / SAMPLES_FILE, allow_pickle=False, **arrays)


def read_samples(folder: Path, point: str, name: str) -> list[list[int]]:
    """A runner's turns at a point, those of all groups one after the other.

    Raises:
        KeyError: It was not measured there.
    """
    return [turn for group in read_groups(folder, point, name) for turn in group]


def read_groups(folder: Path, point: str, name: str) -> list[list[list[int]]]:
    """Return a runner's turns in each group of models; none in a group without it.

    Raises:
        KeyError: It was not measured at the point.
    """
    import numpy as np

    prefix = f"{point}/{name}"
    with np.load(folder / SAMPLES_FILE, allow_pickle=False) as arrays:
        runs = arrays[f"{prefix}/runs_ns"]
        ends = np.cumsum(arrays[f"{prefix}/sizes"])
        counts = arrays[f"{prefix}/groups"] if f"{prefix}/groups" in arrays else [len(ends)]
    turns = iter([turn.tolist() for turn in np.split(runs, ends[:-1])])
    return [[next(turns) for _ in range(count)] for count in counts]
