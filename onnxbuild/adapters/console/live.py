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

from onnxbuild.adapters.console.meter import Meter, bar
from onnxbuild.adapters.console.words import Words
from onnxbuild.core.event import (
    Event,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
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
        spinner: Shows that it goes on.
        meter: How far it is.
        is_step: Whether it is one of the graph's.
    """

    since_s: float
    reason: str
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))
    meter: Meter = field(default_factory=Meter)
    is_step: bool = True


class RunningSteps:
    """The steps that run now, and how many there are of each state."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}
        self._total = 0
        self._cached = 0
        self._ended = 0

    def note(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, RunStarted):
            self._total, self._cached, self._ended = event.steps, 0, 0
        elif isinstance(event, StepStarted):
            reason = event.reasons[0] if event.reasons else ""
            self._running[event.step] = _Running(time.monotonic(), reason)
        elif isinstance(event, StepProgress):
            self._go_on(event)
        elif isinstance(event, StepCached):
            self._cached += 1
        elif isinstance(event, StepFinished | StepFailed):
            self._running.pop(event.step, None)
            self._ended += not (isinstance(event, StepFinished) and event.fails)
        elif isinstance(event, StepLeftOut):
            self._ended += len(event.followers)
        elif isinstance(event, StepBlocked):
            self._running.pop(event.step, None)
            self._ended += 1

    def _go_on(self, event: StepProgress) -> None:
        """A step, or what is made before any step runs: that begins with its first report, and ends with its last."""
        now_s = time.monotonic()
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
        if not (self._total or self._running):
            return [Text("starting", style="dim")]
        running = sum(each.is_step for each in self._running.values())
        left = max(self._total - self._cached - self._ended - running, 0)
        state = Text(
            f"{self._cached} cached, {self._ended} ended, {running} running, {left} to go",
            style="dim",
        )
        steps = [
            line
            for step, each in list(self._running.items())
            for line in _lines(step, each, width)
        ]
        return [*steps, state]


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
    """A running step: its name and time with the bar, or with the reason; and what it says, below."""
    now_s = time.monotonic()
    dots = running.spinner.render(time.monotonic())
    head = dots if isinstance(dots, Text) else Text("-")
    name = step if len(step) <= _MOST_NAME else f"{step[: _MOST_NAME - 3]}..."
    head = Text.assemble(head, f" {name} ", (f"{now_s - running.since_s:5.1f} s ", "bold"))
    room = width - head.cell_len
    if not running.meter:
        head.append(running.reason, "dim")
        head.truncate(width, overflow="ellipsis")
        return [head]
    last = running.meter.last
    drawn = bar(last.done, last.total)
    words = running.meter.words(now_s)
    below = last.note
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
