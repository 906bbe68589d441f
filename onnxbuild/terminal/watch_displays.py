"""A watch on a terminal, as one screen; elsewhere as one line a build."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.segment import Segment, Segments
from rich.text import Text

from onnxbuild.adapters.clock import SystemClock
from onnxbuild.adapters.console.live import RunningSteps, style_of
from onnxbuild.adapters.console.words import Words
from onnxbuild.core.event import Event, StepFailed
from onnxbuild.terminal.table import format_table
from onnxbuild.watching.result import WatchedBuild

if TYPE_CHECKING:
    from onnxbuild.output.pages import WatchRecord

_CLOCK = SystemClock()
_REFRESH_S = 0.12
_NAMES = 3
_AROUND = 4
"""Lines of the screen that always show: the title, the keys, and an empty one next to each."""


class _Quiet:
    """Shows nothing while a build runs, and keeps its failures."""

    def __init__(self) -> None:
        self._words = Words(verbose=False)
        self._failures: list[list[str]] = []

    def begin(self, build: WatchedBuild) -> None:
        """Forget the build before."""
        del build
        self._words, self._failures = Words(verbose=False), []

    def emit(self, event: Event) -> None:
        """Keep failures."""
        if isinstance(event, StepFailed):
            self._failures.append(self._words.lines(event))

    def tick(self) -> None:
        """Show nothing."""


class BuildLines(_Quiet):
    """One line a build.

    Args:
        write: Takes one line, without its end.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write

    def end(self, build: WatchedBuild) -> None:
        """Write the line."""
        if build.exit_code is None:
            return
        parts = [build.counts()]
        head = "ok      "
        if not build.is_good:
            head = "" if self._failures else "error   "
            more = len(self._failures) - 1
            first = [
                *(lines[0] for lines in self._failures[:1]),
                *([f"{more} more failed"] if more > 0 else []),
            ]
            parts = first or [build.error.splitlines()[0]]
        saved = [f"saved {names_of(build.saved)}"] if build.saved else []
        self._write(f"{head}{'; '.join([*parts, *build.moved, *saved])}")


class JsonBuilds(_Quiet):
    """One line of JSON a build."""

    def __init__(self, write: Callable[[WatchRecord], None]) -> None:
        super().__init__()
        self._write = write

    def end(self, build: WatchedBuild) -> None:
        """Write the record."""
        if build.exit_code is None:
            return
        self._write(
            {
                "type": "watched",
                "saved": [*build.saved],
                "exit_code": build.exit_code,
                "counts": build.counts(),
                "rows": [dict(row) for row in build.rows],
                "moved": [*build.moved],
                "failures": ["\n".join(lines) for lines in self._failures],
                "error": build.error,
            }
        )


class Screen:
    """One screen: what was saved, what runs, what came out, what moved since the last good build.

    Args:
        console: Where to; standard output if None.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._title = title
        self._build = WatchedBuild()
        self._good: WatchedBuild | None = None
        self._steps: RunningSteps | None = None
        self._words = Words(verbose=False)
        self._failures: list[str] = []
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, vertical_overflow="crop"
        )
        self._drawn_s = 0.0

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        for line in self._result():  # what was seen last stays
            self._console.print(line)

    def begin(self, build: WatchedBuild) -> None:
        """Show what was saved."""
        self._build, self._steps, self._failures = build, RunningSteps(), []
        self._words = Words(verbose=False, reasons=False, width=self._console.width)
        self._draw()

    def emit(self, event: Event) -> None:
        """Show what runs; keep failures."""
        if self._steps is not None:
            self._steps.note(event)
        if isinstance(event, StepFailed):
            self._failures += self._words.lines(event)

    def tick(self) -> None:
        """Draw again, a few times a second."""
        if _CLOCK.monotonic_s() - self._drawn_s > _REFRESH_S:
            self._draw()

    def end(self, build: WatchedBuild) -> None:
        """Show what came out."""
        self._build, self._steps = build, None
        if build.is_good:
            self._good = build
        self._draw()

    def _draw(self) -> None:
        self._drawn_s = _CLOCK.monotonic_s()
        width = self._console.width
        head = Text.assemble(("watching ", "dim"), (self._title, "bold"))
        head.truncate(width, overflow="ellipsis")
        shown: list[RenderableType] = []
        if self._build.saved:
            shown.append(_line(f"saved    {names_of(self._build.saved)}", width, "cyan"))
        if self._steps is not None:
            shown += self._steps.lines(width)
            shown += self._failed()
        else:
            shown += self._result()
        below = _line("save a file to build again; q or Ctrl-C to stop", width, "dim")
        room = self._console.height - _AROUND
        self._live.update(
            Group(head, Text(), self._fitted(shown, room), Text(), below), refresh=True
        )

    def _fitted(self, shown: Sequence[RenderableType], room: int) -> RenderableType:
        """Fit the lines into the room that there is; the last one says how many are not shown."""
        lines = self._console.render_lines(Group(*shown), pad=False)
        if len(lines) > room:
            room = max(room, 0)
            kept = max(room - 1, 0)
            more = f"... {len(lines) - kept} more lines, in a taller window"
            cut = self._console.render_lines(_line(more, self._console.width, "dim"), pad=False)
            lines = [*lines[:kept], *cut][:room]
        return Segments([part for line in lines for part in (*line, Segment.line())])

    def _failed(self) -> list[Text]:
        return [Text(line, style=style_of(line)) for line in self._failures]

    def _result(self) -> list[Text]:
        """Return the lines on how the last build ended, what moved, and the table of the last good one."""
        build, width = self._build, self._console.width
        if build.exit_code is None:
            return []
        style = "green" if build.is_good else "bold red"
        state = "ok       " if build.is_good else "FAILED   "
        lines = [_line(f"{state}{build.counts()}", width, style), *self._failed()]
        lines += [Text(line) for line in build.error.splitlines()]
        if build.is_good and build.moved:
            lines += [Text(), Text("since the last good build:", style="dim")]
            lines += [
                Text(each, style="yellow") for line in build.moved for each in _hung(line, width)
            ]
        if self._good is not None:
            lines += self._table(self._good, is_now=build.is_good)
        return lines

    def _table(self, good: WatchedBuild, *, is_now: bool) -> list[Text]:
        width = self._console.width
        lines = [Text()]
        if not is_now:
            lines.append(Text("the last good build:", style="dim"))
        style = "" if is_now else "dim"
        lines += [_line(line, width, style) for line in format_table(good.rows, width, keys=2)]
        lines += [Text(line, style="dim") for line in good.skipped]
        return lines


def names_of(saved: Sequence[str]) -> str:
    """Return the names of saved files: the first three, and how many more."""
    more = len(saved) - _NAMES
    return ", ".join(saved[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _hung(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
    )


def _line(text: str, width: int, style: str = "") -> Text:
    line = Text(text, style=style, no_wrap=True)
    line.truncate(width, overflow="ellipsis")
    return line
