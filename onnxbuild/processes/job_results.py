"""Read the result of a step's process, for the engine."""

import errno
import json
import os
import re
import shlex
import signal
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.adapters.console.words import near
from onnxbuild.adapters.disk.atomic_files import has_no_room, store_error
from onnxbuild.adapters.disk.statcache import identity
from onnxbuild.adapters.locate import store_root
from onnxbuild.adapters.machine import memory_bytes
from onnxbuild.adapters.observe.kernel_view import View, merged
from onnxbuild.adapters.observe.supervisor import SEEN_FILE
from onnxbuild.adapters.sandbox.call_site import own_line
from onnxbuild.adapters.sandbox.refusal import certain_refusal
from onnxbuild.adapters.sandbox.undeclared import RefusedStep
from onnxbuild.adapters.toolchain.path_names import PathNames
from onnxbuild.core.action import NO_FILE, NOT_INSTALLED, Expense, Listing, Observed
from onnxbuild.core.errors import EXIT_BUG, BuildError, StepError, StoreError
from onnxbuild.core.places import HOME, real_path
from onnxbuild.core.ports import Done, Fingerprints, Job, Store
from onnxbuild.core.sizes import size_text
from onnxbuild.core.step import Finding, Outcome
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.processes.child import RESULT_FILE
from onnxbuild.recipe.load import names_in


def recipe_file(job: Job, project: Path) -> str:
    """Return the file that declares a job's step, absolute: a recipe's, or that of a base.

    Args:
        project: The project's root, which places are relative to; the working folder may be another.
    """
    return os.path.abspath(os.path.join(project, job.step.location.path))


def again(job: Job, project: Path, store: Path) -> str:
    """Return the command that runs a job's step alone."""
    file, name = recipe_file(job, project), RecipeName.parse(job.address.recipe).base
    is_own = name in names_in(Path(file), os.environ)  # else it is a base, which can't be built
    part = str(job.address) if RecipeName.parse(job.address.recipe).member else job.address.local
    words = ["onnxbuild", "run", near(file) if is_own else name, "--only", part]
    if os.path.abspath(store) != os.path.abspath(store_root(project, None)):
        words += ["--store", near(str(store))]
    return shlex.join(words)


_TAIL_LINES, _TAIL_BYTES = 15, 1 << 16
_CRASHED = "Fatal Python error: "  # faulthandler's first line; its frames follow, innermost first
_FRAME = re.compile(r'  File "(.+)", line (\d+) in ')
_MOST_SHARE = 0.85  # of the machine's memory: `--memory` is 90 % of it by default


@dataclass(frozen=True, slots=True)
class World:
    """Surroundings that a job ran in.

    Attributes:
        project: The project's root.
        store_root: The store's folder.
        store: Takes the job's outputs.
        places: Name of a folder outside the project -> its path.
        fingerprints: Returns the digests of what the child used.
        owners_of: Returns the distributions that own an installed file.
    """

    project: Path
    store_root: Path
    store: Store
    places: Mapping[str, str]
    fingerprints: Fingerprints
    owners_of: Callable[[str], Collection[str]]


def read_result(
    job: Job,
    folder: Path,
    message: Mapping[str, Any],
    *,
    killed_for: StepError | None,
    world: World,
) -> Done:
    """Return how a job ended, with its outputs in the store.

    Args:
        job: What was asked for.
        folder: The job's folder, with its result in it.
        message: The fork server's last one about it: watched, fault, status, wall_s, cpu_s, peak_bytes.
        killed_for: Why it was killed; None if it was not.
        world: What it ran in.

    Raises:
        StoreError: The outputs can't be written.
    """
    expense = Expense(
        round(message["wall_s"], 3), round(message["cpu_s"], 3), message["peak_bytes"]
    )
    if killed_for is not None:
        return failed(job, killed_for, expense)
    if message["fault"]:
        refused = OSError(message["fault"], os.strerror(message["fault"]))
        return failed(job, store_error(refused, folder / SEEN_FILE), expense)
    seen: dict[str, Any] | None = None
    try:
        if message["watched"]:
            seen = json.loads((folder / SEEN_FILE).read_bytes())
        result = json.loads((folder / RESULT_FILE).read_bytes())
    except (OSError, ValueError):
        crash = _crash(job, message["status"], folder, expense, world)
        refusal = (
            None if seen is None else certain_refusal(seen, crash, None, {}, _reader(job, world))
        )
        return failed(job, refusal or crash, expense)
    error = _error_in(result, seen, _reader(job, world))
    if error is not None:
        return Done(job, None, {}, Observed(), expense, error)
    used = result["observed"]
    if seen is not None:
        names = PathNames(world.project, world.places)
        used = merged(used, seen, View(names, world.owners_of, job.action.files))
    try:
        observed = take_observed(
            used, job, project=world.project, places=world.places, fingerprints=world.fingerprints
        )
    except BuildError as fault:
        return failed(job, fault, expense)
    try:
        outputs = {
            name: world.store.ingest(Path(path), job.outputs[name])
            for name, path in result["outputs"].items()
        }
    except StepError as fault:
        return Done(job, None, {}, Observed(), expense, fault)
    outcome = result["outcome"]
    return Done(
        job=job,
        outcome=Outcome(
            metrics=outcome["metrics"],
            findings=tuple(Finding(**each) for each in outcome["findings"]),
            notes=tuple(outcome["notes"]),
            not_applicable=outcome["not_applicable"] and Finding(**outcome["not_applicable"]),
        ),
        outputs=outputs,
        observed=observed,
        expense=expense,
        error=None,
    )


def _reader(job: Job, world: World) -> RefusedStep:
    return RefusedStep(
        job.step.name,
        project=os.path.realpath(world.project),
        recipe=recipe_file(job, world.project),
        store=os.path.realpath(world.store_root),
        home=world.places[HOME],
        own_home="",
        declared=frozenset(job.action.files),
    )


def _error_in(
    result: Mapping[str, Any], seen: Mapping[str, Any] | None, reader: RefusedStep
) -> BuildError | None:
    """Return a job's error: a refusal that the kernel reported, else what the job raised.

    Without a report by the kernel, the job's own guess at a refusal comes first.
    """
    error = _as_error(result["error"]) if "error" in result else None
    refusal = result.get("refusal")
    if seen is None:
        return error if refusal is None else _as_error(refusal["error"])
    guess = None if refusal is None else refusal["guess"]
    if refusal is not None and guess is None:
        return _as_error(refusal["error"])  # the network, or the home folder
    return certain_refusal(seen, error, guess, result["asked_by"], reader) or error


def take_observed(
    seen: Mapping[str, Any] | None,
    job: Job,
    *,
    project: Path,
    places: Mapping[str, str],
    fingerprints: Fingerprints,
) -> Observed:
    """Take what a child says that it used, with the digests of it; arguments as for `read_result`.

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
        links=dict(sorted(seen.get("links", {}).items())),
        existence=dict(sorted(seen.get("existence", {}).items())),
    )


def failed(job: Job, error: BuildError, expense: Expense) -> Done:
    """Return a failed job without a result of its own, with the last lines that it printed, unless the disk is why."""
    printed = () if isinstance(error, StoreError) else tail(job.log)
    return Done(job, None, {}, Observed(), expense, error, log_tail=printed)


def _as_error(error: Mapping[str, Any]) -> BuildError:
    found = StepError(error["what"], where=error["where"], fix=error["fix"])
    found.exit_code = error["exit_code"]
    return found


def _crash(job: Job, status: int, folder: Path, expense: Expense, world: World) -> BuildError:
    if status > 0 and has_no_room(folder):
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
        if status != EXIT_BUG:
            what += f", as by os._exit({status})"
    alone = " --jobs 1" if status == -signal.SIGKILL else ""
    where = _crash_line(job.log, os.path.realpath(world.project)) or job.step.name
    return StepError(
        what,
        where=where,
        fix=f"to try it again: {again(job, world.project, world.store_root)}{alone}",
    )


def _crash_line(log: Path, project: str) -> str:
    """The innermost line of the project's own code in faulthandler's report; empty for none."""
    lines = iter(_printed(log))
    if not any(line.startswith(_CRASHED) for line in lines):
        return ""
    frames = filter(None, map(_FRAME.match, lines))
    return next(filter(None, (own_line(each[1], int(each[2]), project) for each in frames)), "")


def too_much_memory(job: Job, peak_bytes: int, limit_bytes: int) -> StepError:
    """The error for a step that took more than it may.

    Args:
        peak_bytes: What it was seen to take.
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
        f"stopped: it took {size_text(peak_bytes)} of memory; {size_text(limit_bytes)} allowed (--memory)",
        where=job.step.name,
        fix=fix,
    )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


def tail(log: Path) -> tuple[str, ...]:
    """Return the last lines of a log that are not empty; of a crash, up to the line that names it."""
    lines = _printed(log)
    crashed = [number for number, line in enumerate(lines) if line.startswith(_CRASHED)]
    if crashed:
        del lines[crashed[0] + 1 :]
    return tuple(lines[-_TAIL_LINES:])


def _printed(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]
