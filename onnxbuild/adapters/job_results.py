"""From what a child left behind to what the engine is told."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.adapters.child import FULL_BYTES, RESULT_FILE
from onnxbuild.adapters.durable import store_error
from onnxbuild.adapters.machine import memory_bytes
from onnxbuild.adapters.statcache import identity
from onnxbuild.core.action import NO_FILE, NOT_INSTALLED, Expense, Listing, Observed
from onnxbuild.core.errors import BuildError, StepError
from onnxbuild.core.places import real_path
from onnxbuild.core.ports import Done, Fingerprints, Job
from onnxbuild.core.step import Finding, Outcome

_TAIL_LINES, _TAIL_BYTES = 15, 1 << 16
_MOST_SHARE = 0.85  # of the machine's memory: `--memory` is 90 % of it unless told otherwise


def read_result(
    job: Job,
    folder: Path,
    message: Mapping[str, Any],
    *,
    killed_for: StepError | None,
    project: Path,
    places: Mapping[str, str],
    fingerprints: Fingerprints,
) -> Done:
    """How a job ended.

    Args:
        job: What was asked for.
        folder: The job's folder, with its result in it.
        message: The zygote's last word on it: status, wall_s, cpu_s, peak_bytes.
        killed_for: Why it was killed; None if it was not.
        project: The project's root.
        places: Name of a folder outside the project -> where it lies.
        fingerprints: Gives the digests of what the child says that it used.
    """
    expense = Expense(
        round(message["wall_s"], 3), round(message["cpu_s"], 3), message["peak_bytes"]
    )
    status = message["status"]
    if killed_for is not None:
        return failed(job, killed_for, expense)
    try:
        result = json.loads((folder / RESULT_FILE).read_bytes())
    except (OSError, ValueError):
        return failed(job, _crash(job, status, folder, expense), expense)
    if "error" in result:
        return Done(job, None, {}, Observed(), expense, _told(result["error"]))
    try:
        observed = take_observed(
            result["observed"], job, project=project, places=places, fingerprints=fingerprints
        )
    except BuildError as error:
        return failed(job, error, expense)
    outcome = result["outcome"]
    return Done(
        job=job,
        outcome=Outcome(
            metrics=outcome["metrics"],
            findings=tuple(Finding(**each) for each in outcome["findings"]),
            notes=tuple(outcome["notes"]),
            unfit=outcome["unfit"] and Finding(**outcome["unfit"]),
        ),
        outputs={name: Path(path) for name, path in result["outputs"].items()},
        observed=observed,
        expense=expense,
        error=None,
    )


def take_observed(
    seen: Mapping[str, Any] | None,
    job: Job,
    *,
    project: Path,
    places: Mapping[str, str],
    fingerprints: Fingerprints,
) -> Observed:
    """What a child says that it used, with the digests of it; arguments as for `read_result`.

    Raises:
        StepError: A file changed while the step ran.
    """
    if seen is None:
        return Observed()
    prints = fingerprints
    data: dict[str, str] = {}
    for path, found in sorted(seen["data"].items()):
        if path in job.action.files:
            continue
        real = real_path(path, places)
        data[path] = prints.file(real) or NO_FILE
        if found and identity(os.path.join(project, real)) != found:
            raise StepError(
                f"{real} changed while the step ran; nothing was recorded",
                where=job.step.name,
                fix="run again when the file is saved; a step must not change what it reads",
            )
    return Observed(
        sources=dict(sorted(seen["sources"].items())),
        data=data,
        listings={
            folder: Listing(tuple(names), tuple(found))
            for folder, (names, found) in sorted(seen["listings"].items())
        },
        distributions={
            name: prints.distribution(name) or NOT_INSTALLED for name in seen["distributions"]
        },
    )


def failed(job: Job, error: BuildError, expense: Expense) -> Done:
    """A job that could not say why it failed: the last that it printed is all there is."""
    return Done(job, None, {}, Observed(), expense, error, log_tail=tail(job.log))


def _told(error: Mapping[str, Any]) -> BuildError:
    told = StepError(error["what"], where=error["where"], fix=error["fix"])
    told.exit_code = error["exit_code"]
    return told


def _crash(job: Job, status: int, folder: Path, expense: Expense) -> BuildError:
    if status > 0 and shutil.disk_usage(folder).free < FULL_BYTES:
        return store_error(OSError(errno.ENOSPC, ""), folder)
    if status < 0:
        known = {each.value: each.name for each in signal.Signals}
        name = known.get(-status, f"signal {-status}")  # real-time signals have no name
        what = f"the step's process was killed by {name}"
        if -status == signal.SIGKILL:
            what += (
                f", as when the machine runs out of memory: it had taken {_gib(expense.peak_bytes)} "
                f"of {_gib(memory_bytes())}"
            )
    else:
        what = f"the step's process ended with status {status} and without a result"
    alone = " --jobs 1" if status == -signal.SIGKILL else ""
    return StepError(what, where=job.step.name, fix=f"to try it again: {_again(job)}{alone}")


def too_much_memory(job: Job, peak_bytes: int, limit_bytes: int) -> StepError:
    """The error for a step that took more than it may.

    Args:
        job: The step's.
        peak_bytes: What it was seen to take.
        limit_bytes: What it may.
    """
    have = memory_bytes()
    if limit_bytes < _MOST_SHARE * have:
        fix = f"the machine has {_gib(have)}: allow more with `--memory`"
    else:
        fix = (
            "that is all this machine has: build on one with more, measure fewer variants at a time "
            "(`--only`), or make a smaller model"
        )
    return StepError(
        f"stopped: it took {_gib(peak_bytes)} of memory; {_gib(limit_bytes)} allowed (--memory)",
        where=job.step.name,
        fix=fix,
    )


def _again(job: Job) -> str:
    local = job.step.name.partition(":")[2]
    return f"onnxbuild run {job.step.location.path} --only {local}"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


def tail(log: Path) -> tuple[str, ...]:
    """The last lines of a log that say something."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ()
    lines = [line for line in text.splitlines() if line.strip()]
    return tuple(lines[-_TAIL_LINES:])
