"""Describe a run to a person: one line a step, one message a failure."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from onnxbuild.adapters.console.wrap import wrapped
from onnxbuild.adapters.locate import store_root
from onnxbuild.core.decision import FIRST_BUILD
from onnxbuild.core.errors import EXIT_GATE
from onnxbuild.core.event import (
    Event,
    Notice,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepStarted,
    StepWaiting,
)
from onnxbuild.core.step import DETAILS

MIB = 1 << 20
_INDENT = " " * 8
_LONGEST_WHAT = 600
"""Characters of a message; the rest of an exporter's wall of text is in the step's log."""


class Words:
    """Says the events of runs, one after the other.

    Args:
        verbose: Say when each step starts, which are cached, and every reason.
        reasons: Say in a step's line why it ran.
        width: Characters a line, for failures; 0 for lines as long as they come.
    """

    def __init__(self, *, verbose: bool, reasons: bool = True, width: int = 0) -> None:
        self._verbose = verbose
        self._says_reasons = reasons and not verbose
        self._width = width
        self._reasons: dict[str, tuple[str, ...]] = {}
        self._failed: dict[tuple[str, str, str], str] = {}
        self._fixes: set[str] = set()

    def lines(self, event: Event) -> list[str]:
        """Return an event as lines of text; none for what a person need not read."""
        if isinstance(event, RunStarted):
            self._failed, self._fixes = {}, set()
        if isinstance(event, StepStarted):
            self._reasons[event.step] = event.reasons
        if isinstance(event, StepFailed):
            return self._failure(event)
        if isinstance(event, StepFinished):
            return self._done(event)
        if isinstance(event, StepLeftOut):
            return self._wrapped(f"left out {event.step}: {event.what}")
        if isinstance(event, Notice):
            return self._wrapped(f"note    {event.text}")
        if isinstance(event, StepWaiting) and not event.equal:
            return [f"wait    {event.step}  (another run is building it)"]
        return detail(event) if self._verbose else []

    def _done(self, event: StepFinished) -> list[str]:
        """One line, with why it ran; of a failed verdict none: its failure comes next, with all there is to say."""
        if event.fails and not self._verbose:
            return []
        same = ", output unchanged" if event.unchanged else ""
        cost = f"{event.wall_s:.1f} s, {event.peak_bytes / MIB:.0f} MiB{same}"
        reasons = self._reasons.pop(event.step, ()) if self._says_reasons else ()
        why = "" if not reasons or reasons == (str(FIRST_BUILD),) else f"; {_first(reasons)}"
        said = [*event.notes, *(event.metrics.get(DETAILS, ()) if self._verbose else ())]
        notes = [line for note in said for line in self._wrapped(f"{_INDENT}{note}")]
        return [f"done    {event.step}  ({cost}{why})", *notes]

    def _failure(self, event: StepFailed) -> list[str]:
        """Return a failure's lines: what, where, fix, log; for an error shown before, one line that says so."""
        message = (event.what, event.where.replace(event.step, ""), event.fix)
        first = self._failed.setdefault(message, event.step)
        held_up = _held_up(event.blocked)
        if first != event.step:
            return self._wrapped(
                f"FAILED  {event.step}: for the same reason{f' ({held_up})' if held_up else ''}"
            )
        what, is_cut = _cut(event.what)
        lines = self._wrapped(f"FAILED  {event.step}: {what}")
        where = _place(event)
        if where:
            lines.append(f"{_INDENT}at {where}")
        if event.fix and event.fix not in self._fixes:
            lines += self._wrapped(f"{_INDENT}fix: {event.fix}")
            self._fixes.add(event.fix)
        if held_up:
            lines.append(f"{_INDENT}{held_up}")
        if event.log_tail:
            lines.append(f"{_INDENT}its last lines:")
            lines += [f"{_INDENT}| {line}" for line in event.log_tail]
        if event.log and event.exit_code != EXIT_GATE:  # a verdict's log is empty
            asked = "the whole message" if is_cut else "its log"
            lines.append(f"{_INDENT}{asked}: {log_command(event)}")
        return lines

    def _wrapped(self, text: str) -> list[str]:
        return wrapped(text, self._width).split("\n")


def detail(event: Event) -> list[str]:
    """Return what `--verbose` adds: cached steps, starts with every reason, what a failure holds up."""
    if isinstance(event, StepStarted):
        return [f"run     {event.step}  ({'; '.join(event.reasons)})"]
    if isinstance(event, StepCached):
        return [f"cached  {event.step}"]
    if isinstance(event, StepBlocked):
        return [f"blocked {event.step}  (needs {event.needs})"]
    if isinstance(event, StepWaiting):
        return [f"wait    {event.step}  ({event.equal}, its equal, is running)"]
    if isinstance(event, RunStarted):
        return [f"run {event.run}: {event.steps} steps"]
    return []


def log_command(event: StepFailed) -> str:
    """Return the command that prints a failed step's log, from this folder."""
    name = shlex.quote(event.step)
    root = Path(event.log).parent.parent.parent.parent  # of runs/ID/logs/STEP.log
    is_own = root == store_root(_project_here(), None)
    return f"onnxbuild log {name}" + ("" if is_own else f" --store {shlex.quote(near(str(root)))}")


def near(path: str) -> str:
    """Return a path as a person here would type it."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(path) else path


def _project_here() -> Path:
    from onnxbuild.project_folder import find_project

    return find_project(Path("recipe.yaml"))


def _first(reasons: Sequence[str]) -> str:
    more = len(reasons) - 1
    return reasons[0] + (f", and {more} more" if more else "")


def _held_up(count: int) -> str:
    return "" if not count else f"{count} step{'s depend' if count > 1 else ' depends'} on it"


def _place(event: StepFailed) -> str:
    """Return where a step failed, without the step's name; empty if nothing else is known."""
    inner = event.where.removeprefix(event.step)
    if inner.startswith(" (") and inner.endswith(")"):
        inner = inner[2:-1]
    elif inner.startswith(", "):
        inner = inner[2:]
    elif inner:
        return event.where
    return near(inner) if os.path.isabs(inner) else inner


def _cut(what: str) -> tuple[str, bool]:
    """A message of a length that a person reads, and whether it was longer."""
    if len(what) <= _LONGEST_WHAT:
        return what, False
    return f"{what[:_LONGEST_WHAT].rsplit(' ', 1)[0]} ...", True
