"""The live display on a terminal: what ended above, what runs now below, with its bar and its time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from onnxbuild.adapters.console.meter import Meter, bar, last_time
from onnxbuild.adapters.console.run_meter import RunMeter
from onnxbuild.adapters.console.words import Words
from onnxbuild.core.event import (
    Event,
    StepBlocked,
    StepFailed,
    StepFinished,
    StepProgress,
    StepStarted,
)

if TYPE_CHECKING:
    from typing import Self

_STYLES = {"done": "green", "FAILED": "bold red", "blocked": "yellow", "note": "cyan"}
_MOST_NAME = 32
_INDENT = 2


@dataclass(slots=True)
class _Running:
    """A step that runs.

    Attributes:
        since_s: When it started, by the monotonic clock.
        reason: The first one why.
        last_s: How long it took last time; 0 if that is not known.
        spinner: Shows that it goes on.
        meter: How far it is.
        is_step: Whether it is one of the graph's.
    """

    since_s: float
    reason: str
    last_s: float = 0.0
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))
    meter: Meter = field(default_factory=Meter)
    is_step: bool = True


class RunningSteps:
    """The steps that run now, and how many there are of each state."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}
        self._run = RunMeter()
        self._has_begun = False

    def note(self, event: Event) -> None:
        """Take one event."""
        self._run.take(event, time.monotonic())
        if isinstance(event, StepStarted):
            reason = event.reasons[0] if event.reasons else ""
            self._running[event.step] = _Running(time.monotonic(), reason, event.last_s)
        elif isinstance(event, StepProgress):
            self._go_on(event)
        elif isinstance(event, StepFinished | StepFailed | StepBlocked):
            self._running.pop(event.step, None)

    def _go_on(self, event: StepProgress) -> None:
        """A step, or what is made before any step runs: that begins with its first report, and ends with its last."""
        now_s = time.monotonic()
        self._has_begun = True
        running = self._running.setdefault(event.step, _Running(now_s, "", is_step=False))
        if not running.is_step and event.done >= event.total:
            del self._running[event.step]
        elif not event.is_sign_of_life:
            running.meter.take(event, now_s)

    def lines(self, width: int) -> list[RenderableType]:
        """Return a line or two for each running step, and one for the numbers.

        Args:
            width: Characters a line.
        """
        run = self._run
        if not (run.total or self._running):
            return [] if self._has_begun else [Text("starting", style="dim")]
        steps = [
            line
            for step, each in list(self._running.items())
            for line in _lines(step, each, width)
        ]
        return [*steps, self._state(width)] if run.total else steps

    def _state(self, width: int) -> Text:
        """Return the run's progress: a bar, the counts, the rate, the time left."""
        run = self._run
        running = sum(each.is_step for each in self._running.values())
        to_go = max(run.left - running, 0)
        numbers = f"{run.cached} cached, {run.ended} ended, {running} running, {to_go} to go"
        drawn, pace = run.bar(), run.pace(time.monotonic())
        state = Text.assemble((f"{drawn} " if drawn else "", "cyan"), (numbers, "dim"))
        state.append(f", {pace}" if pace else "", "dim")
        state.truncate(width, overflow="ellipsis")
        return state


class LiveDisplay:
    """Shows running steps with their time and how far they are, finished ones as lines above.

    Args:
        verbose: Say cached steps and every reason, too.
        console: Where to; standard output if None.
    """

    def __init__(self, *, verbose: bool, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._words = Words(verbose=verbose, reasons=False, width=self._console.width)
        self._steps = RunningSteps()
        self._live = Live(
            console=self._console,
            get_renderable=lambda: Group(*self._steps.lines(self._console.width)),
            refresh_per_second=8,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def emit(self, event: Event) -> None:
        """Take one event."""
        self._steps.note(event)
        lines = [Text(line, style=style_of(line)) for line in self._words.lines(event)]
        if lines:  # at once: what runs is drawn again after each call
            self._console.print(Text("\n").join(lines), soft_wrap=True)


def style_of(line: str) -> str:
    """Return the colour of a line by its first word; empty for none."""
    return _STYLES.get(line.split(" ", 1)[0], "")


def _lines(step: str, running: _Running, width: int) -> list[RenderableType]:
    """A running step: its name and time with the bar, the phase or the reason; and what it says, below."""
    now_s = time.monotonic()
    dots = running.spinner.render(time.monotonic())
    head = dots if isinstance(dots, Text) else Text("-")
    name = step if len(step) <= _MOST_NAME else f"{step[: _MOST_NAME - 3]}..."
    head = Text.assemble(head, f" {name} ", (f"{now_s - running.since_s:5.1f} s ", "bold"))
    room = width - head.cell_len
    before = "" if running.meter.is_of_known_end() else last_time(running.last_s)
    if not running.meter:
        head.append("; ".join(filter(None, (before, running.reason))), "dim")
        head.truncate(width, overflow="ellipsis")
        return [head]
    last = running.meter.last
    drawn = bar(last.done, last.total)
    words = running.meter.words(now_s)
    below = "; ".join(filter(None, (last.note, before)))
    if not words:
        words, below = last.note, before
    if drawn and room > len(drawn):
        head.append(f"{drawn} ", "cyan")
        room = width - head.cell_len
    if len(words) <= room:
        head.append(words)
    else:
        below = "; ".join(filter(None, (words, below)))
    head.truncate(width)
    if not below:
        return [head]
    more = Text(" " * _INDENT + below, style="dim")
    more.truncate(width, overflow="ellipsis")
    return [head, more]
