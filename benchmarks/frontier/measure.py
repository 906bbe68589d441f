"""Speed side by side; nearness to fp32 by code of its own, so that no ruler measures itself."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import psutil

from benchmarks.frontier.plain import digest
from benchmarks.frontier.subjects import Feeds, Subject
from onnxbuild.onnxkit.timing.ratios import Ratio, ratio_of
from onnxbuild.onnxkit.timing.rounds import Turns, measure_turns

_WARMUP = 3

STEAL_SHARE, BUSY_SHARE, WIDE_SHARE = 0.01, 0.1, 0.03
"""Above these the measurement is called noisy: time that the hypervisor took, cores that other
processes used, and half the width of a ratio's interval, as shares."""


@dataclass(frozen=True)
class Errors:
    """Cosine similarity of a model's outputs to fp32's on the held-out data; `score` where there are labels."""

    samples: int
    cosine_mean: float
    cosine_min: float
    score: float | None


@dataclass(frozen=True)
class Noise:
    """Load of the machine around latency measurements, as shares of all cores' time."""

    load_before: float
    load_after: float
    steal: float
    others: float


def open_model(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """A session on the CPU whose idle threads don't spin: they would slow the next model's turn."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def time_turns(
    runners: Mapping[str, Callable[[], object]], *, seconds: float, runs: int
) -> tuple[dict[str, list[list[int]]], Noise]:
    """Each runner has a turn a round, in random order, until the time is up; see `measure_turns`.

    Args:
        runners: Name -> a call that runs once.
        seconds: For all of them together.
        runs: Of each, at least.
    """
    before, load_before = _usage(), os.getloadavg()[0]
    turns = measure_turns(
        runners,
        warmup=_WARMUP,
        min_samples=max(runs, 3),
        max_time_s=seconds / len(runners),
        settled=lambda _: False,
    )
    after = _usage()
    total = max(after["total"] - before["total"], 1e-9)
    busy, own, steal = (after[each] - before[each] for each in ("busy", "own", "steal"))
    noise = Noise(load_before, os.getloadavg()[0], steal / total, max(busy - own, 0.0) / total)
    return turns, noise


def _usage() -> dict[str, float]:
    """CPU seconds of the machine and of this process since the start."""
    times = psutil.cpu_times()
    steal = getattr(times, "steal", 0.0)
    waiting = times.idle + getattr(times, "iowait", 0.0)
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    own = sum(psutil.Process().cpu_times()[:2])
    return {"total": total, "busy": total - waiting - steal, "own": own, "steal": steal}


def speeds_of(turns: Mapping[str, Turns], base: str) -> dict[str, Ratio]:
    """The base's latency over each one's, paired round by round."""
    return {name: ratio_of(turns[base], own) for name, own in turns.items()}


def complaints(noise: Noise, found: Mapping[str, Ratio]) -> list[str]:
    """Return the reasons why the measurement is noisy; empty if it isn't."""
    said = []
    if noise.steal > STEAL_SHARE:
        said.append(f"the hypervisor took {noise.steal:.0%} of the time")
    if noise.others > BUSY_SHARE:
        said.append(f"other processes used {noise.others:.0%} of the cores")
    wide = [
        name
        for name, ratio in found.items()
        if (ratio.high - ratio.low) / 2 > WIDE_SHARE * ratio.value
    ]
    if wide:
        said.append(f"intervals wider than +- {WIDE_SHARE:.0%}: {', '.join(wide)}")
    return said


def errors_of(subject: Subject, models: Mapping[str, Path], store: Path) -> dict[str, Errors]:
    """Way -> how near it is to `fp32`; kept in the store, since nothing of it depends on the time.

    Args:
        subject: Whose data it is.
        models: Name -> file.
        store: Where they are kept.
    """
    version = digest(Path(__file__), *subject.files, models["fp32"])[:16]
    folder = store / "errors" / f"{subject.name}-{onnxruntime.__version__}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    expected: list[np.ndarray] | None = None
    found = {}
    for name, path in models.items():
        kept = folder / f"{digest(path)}.json"
        if not kept.exists():
            if expected is None:
                expected, _ = _vectors(subject, models["fp32"])
            kept.write_text(json.dumps(asdict(_compare(subject, expected, path))))
        found[name] = Errors(**json.loads(kept.read_text()))
    return found


def _compare(subject: Subject, expected: Sequence[np.ndarray], path: Path) -> Errors:
    actual, score = _vectors(subject, path)
    one, other = np.concatenate(expected), np.concatenate(actual)
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosines = np.minimum((one * other).sum(1) / lengths, 1.0)
    return Errors(len(cosines), float(cosines.mean()), float(cosines.min()), score)


def _vectors(subject: Subject, path: Path) -> tuple[list[np.ndarray], float | None]:
    """Return the compared vectors, a float64 array of shape (vectors, size) for each sample, and the score."""
    session = open_model(path, 1)
    names = [each.name for each in session.get_outputs()]
    vectors, outputs, labels = [], [], []
    for feeds, label in subject.heldout():
        found = dict(zip(names, run_model(session, feeds)(), strict=True))
        rows = np.asarray(subject.vectors(found, feeds), np.float64)
        vectors.append(rows.reshape(len(rows), -1))
        if subject.score:
            outputs.append(found)
            labels.append(label)
    return vectors, subject.score[1](outputs, labels) if subject.score else None


def run_model(session: onnxruntime.InferenceSession, feeds: Feeds) -> Callable[[], Any]:
    """A call that runs the model once."""
    wanted = {each.name for each in session.get_inputs()}
    given = {name: array for name, array in feeds.items() if name in wanted}
    return lambda: session.run(None, given)
