"""The live display on a terminal: what ran above, what runs now below, with its time."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from onnxbuild.adapters.console.sinks import sentences
from onnxbuild.core.event import (
    Event,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepStarted,
)

if TYPE_CHECKING:
    from typing import Self

_STYLES = {"done": "green", "FAILED": "bold red", "blocked": "yellow", "note": "cyan"}


class LiveDisplay:
    """Shows running steps with their time, finished ones as lines above.

    Args:
        verbose: Say cached steps and every reason, too.
        console: Where to; standard output if None.
    """

    def __init__(self, *, verbose: bool, console: Console | None = None) -> None:
        self._verbose = verbose
        self._console = console or Console(highlight=False)
        self._running: dict[str, tuple[float, Spinner, str]] = {}
        self._total = 0
        self._cached = 0
        self._ended = 0
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
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
        if isinstance(event, RunStarted):
            self._total, self._cached, self._ended = event.steps, 0, 0
        elif isinstance(event, StepStarted):
            reason = event.reasons[0] if event.reasons else ""
            self._running[event.step] = (time.monotonic(), Spinner("dots"), reason)
        elif isinstance(event, StepCached):
            self._cached += 1
        elif isinstance(event, StepFinished | StepFailed):
            self._running.pop(event.step, None)
            self._ended += 1
        elif isinstance(event, StepLeftOut):
            self._ended += len(event.followers)
        elif isinstance(event, StepBlocked):
            self._ended += 1
        if not isinstance(event, StepStarted) or self._verbose:
            for line in sentences(event, verbose=self._verbose):
                style = _STYLES.get(line.split(" ", 1)[0], "")
                self._console.print(Text(line, style=style), soft_wrap=True)

    def _render(self) -> RenderableType:
        table = Table.grid(padding=(0, 1))
        for step, (since_s, spinner, reason) in self._running.items():
            elapsed = Text(f"{time.monotonic() - since_s:5.1f} s", style="bold")
            table.add_row(spinner, Text(step), elapsed, Text(reason, style="dim", no_wrap=True))
        left = max(self._total - self._cached - self._ended - len(self._running), 0)
        state = Text(
            f"{self._cached} cached, {self._ended} ended, {len(self._running)} running, {left} to go",
            style="dim",
        )
        return Group(table, state)
