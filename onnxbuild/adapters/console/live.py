"""The live display on a terminal: what ended above, what runs now below, with its bar and its time."""

import time
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from onnxbuild.adapters.console.meter import InProgress, StepsInProgress, bar, last_time
from onnxbuild.adapters.console.words import Words
from onnxbuild.core.event import Event

_STYLES = {"done": "green", "FAILED": "bold red", "blocked": "yellow", "note": "cyan"}
_MOST_NAME = 32
_INDENT = 2


class RunningSteps(StepsInProgress):
    """The steps that run now, as lines of a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._spinner = Spinner("dots")

    def note(self, event: Event) -> None:
        """Take one event."""
        self.take(event, time.monotonic())

    def lines(self, width: int) -> list[RenderableType]:
        """Return a line or two for each running step, and one for the numbers."""
        run = self.run
        if not (run.total or self.running):
            return [] if self.has_begun else [Text("starting", style="dim")]
        steps = [
            line
            for step, each in list(self.running.items())
            for line in _lines(step, each, self._spinner, width)
        ]
        return [*steps, self._state(width)] if run.total else steps

    def _state(self, width: int) -> Text:
        """Return the run's progress: a bar, the counts, the rate, the time left."""
        run = self.run
        running = sum(each.is_step for each in self.running.values())
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

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def emit(self, event: Event) -> None:
        """Take one event."""
        self._steps.note(event)
        lines = [Text(line, style=style_of(line)) for line in self._words.lines(event)]
        if lines:  # at once: what runs is drawn again after each call
            self._console.print(Text("\n").join(lines), soft_wrap=True)


def style_of(line: str) -> str:
    """Return the colour of a line by its first word; empty for none."""
    return _STYLES.get(line.split(" ", 1)[0], "")


def _lines(step: str, running: InProgress, spinner: Spinner, width: int) -> list[RenderableType]:
    """A running step: its name and time with the bar, the phase or the reason; and what it says, below."""
    now_s = time.monotonic()
    dots = spinner.render(now_s)
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
