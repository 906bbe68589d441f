"""Run commands in turn and compare them: medians, ratios to the first, peak memory."""

from __future__ import annotations

import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sample:
    """One run of a command: wall and CPU time in seconds, peak resident bytes of its largest process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def run_once(
    command: Sequence[str], cwd: Path | None = None, *, before: Callable[[], None] | None = None
) -> Sample:
    """Run a command and measure it.

    Args:
        command: With its arguments.
        cwd: Where.
        before: Called in the process that becomes the command.

    Raises:
        SystemExit: It failed; its output is shown.
    """
    read, write = os.pipe()
    started_s = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.close(read)
        if cwd is not None:
            os.chdir(cwd)
        if before is not None:
            before()
        os.execvp(command[0], list(command))
    os.close(write)
    output = b""
    while chunk := os.read(read, 1 << 16):
        output += chunk
    os.close(read)
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - started_s
    if status != 0:
        sys.exit(f"{' '.join(command)} failed:\n{output.decode(errors='replace')}")
    return Sample(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def interleave(
    commands: Mapping[str, Sequence[str]],
    *,
    rounds: int,
    cwd: Path | None = None,
    patience_s: float = math.inf,
) -> dict[str, list[Sample]]:
    """Run all commands `rounds` times, in random order within each round (seeded).

    One that has taken `patience_s` in all is left out once it has run three times.
    """
    order = random.Random(0)
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for _ in range(rounds):
        names = list(commands)
        order.shuffle(names)
        for name in names:
            spent_s = sum(sample.wall_s for sample in samples[name])
            if spent_s > patience_s and len(samples[name]) >= 3:
                continue
            samples[name].append(run_once(commands[name], cwd))
    return samples


def median_s(samples: Sequence[Sample]) -> float:
    """Median wall time in seconds."""
    return statistics.median(sample.wall_s for sample in samples)


def median_cpu_s(samples: Sequence[Sample]) -> float:
    """Median CPU time in seconds, user and system: other work on the machine disturbs it less."""
    return statistics.median(sample.cpu_s for sample in samples)


def peak_bytes(samples: Sequence[Sample]) -> int:
    """Median peak in bytes."""
    return int(statistics.median(sample.peak_bytes for sample in samples))


def machine() -> str:
    """One line that says where this was measured."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {python}"


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """A table; headings are the first row's keys, which all rows have."""
    headings = list(rows[0])
    lines = [headings, ["---"] * len(headings), *([row[key] for key in headings] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def version_of(command: Sequence[str]) -> str:
    """The first line that a command prints; empty if it is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return (done.stdout or done.stderr).splitlines()[0]
