"""The loop of `onnxbuild watch`: build, wait for a save, build again.

A save while a build runs stops that build, as Ctrl-C does, and starts it anew: steps that were finished are
kept, so nothing is done twice, and what is built is never older than what is saved.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.adapters.console.words import near
from onnxbuild.adapters.locate import store_root
from onnxbuild.adapters.watch.build_process import BuildProcess, pause
from onnxbuild.adapters.watch.changes import Changes, now_ns
from onnxbuild.adapters.watch.keyboard import Keyboard
from onnxbuild.core.errors import EXIT_BUG
from onnxbuild.core.event import RunFinished
from onnxbuild.project_folder import find_project
from onnxbuild.watching.child import RESULT
from onnxbuild.watching.result import Display, WatchedBuild, event_of

Row = Mapping[str, str]

_TIME = re.compile(r"([\d.,]+) (ms|s|x)\b")
_SAME_TIME = 0.05
"""Latencies, and ratios of them, that are measured anew differ by as much without a reason."""


def difference(before: Sequence[Row], now: Sequence[Row]) -> list[str]:
    """Return a line for each variant whose cells moved, and for each that came or went.

    Args:
        before: Rows of the last good build's table; see `summary.summarize`.
    """
    old, new = ({_name(row): row for row in rows} for rows in (before, now))
    lines = []
    for name, row in new.items():
        if name not in old:
            lines.append(f"{name}: new")
        elif moved := _moved(old[name], row):
            lines.append(f"{name}: {', '.join(moved)}")
    return [*lines, *(f"{name}: gone" for name in old if name not in new)]


def _name(row: Row) -> str:
    return f"{row['recipe']}:{row['variant']}"


def _moved(old: Row, new: Row) -> list[str]:
    return [
        f"{title} {old.get(title, '-')} -> {new.get(title, '-')}"
        for title in {**new, **old}  # a column without any figure is left out of a table
        if not _is_same(old.get(title, "-"), new.get(title, "-"))
    ]


def _is_same(old: str, new: str) -> bool:
    if old == new:
        return True
    times = [_TIME.match(cell) for cell in (old, new)]
    if not (times[0] and times[1]) or times[0][2] != times[1][2]:
        return False
    first, second = (each[1].replace(",", "") for each in times if each)
    step = 10.0 ** -len(first.partition(".")[2])  # of the last digit that is shown
    apart = abs(float(first) - float(second))
    return apart <= max(_SAME_TIME * max(float(first), float(second)), 1.01 * step)


_POLL_S = 0.1
_QUIT = "q"


class QuitError(Exception):
    """The user pressed q."""


class Watch:
    """Builds what is asked for whenever something is saved that it reads.

    Args:
        asked: As `watching.child.build_once` takes it.
    """

    def __init__(self, asked: Mapping[str, Any], display: Display) -> None:
        self._asked = asked
        self._display = display
        project = find_project(Path(asked["recipes"][0]))
        self._changes = Changes(str(store_root(project, asked["store"])))
        self._good: Sequence[Row] | None = None

    def run(self) -> None:
        """Go on until the user presses q.

        Raises:
            KeyboardInterrupt: The user pressed Ctrl-C.
        """
        recipes = [Path(path).absolute() for path in self._asked["recipes"]]
        paths = [str(each) for path in recipes for each in (path, path.parent)]
        self._changes.watch(paths, now_ns())
        with Keyboard() as keyboard:
            saved: list[str] = []
            try:
                while True:
                    saved = self._build(saved, keyboard) or self._wait(keyboard)
            except QuitError:
                return

    def _build(self, saved: list[str], keyboard: Keyboard) -> list[str]:
        """Build once; return what was saved meanwhile, if that stopped it."""
        build = WatchedBuild(tuple(map(near, saved)))
        self._display.begin(build)
        began_ns = now_ns()
        process = BuildProcess(self._asked)
        result: Mapping[str, Any] | None = None
        try:
            while not process.is_over:
                for message in process.messages(_POLL_S):
                    result = message if message["type"] == RESULT else result
                    self._take(message, build)
                self._display.tick()
                _heed(keyboard)
                if changed := self._changes.found():
                    process.stop()
                    self._display.end(build)
                    return self._changes.settled(changed)
        finally:
            process.stop()
        self._end(build, result, process.said)
        if result is not None:
            self._changes.watch(result["inputs"], began_ns)
        return []

    def _take(self, message: Mapping[str, Any], build: WatchedBuild) -> None:
        event = event_of(message)
        if isinstance(event, RunFinished):
            build.finished = event
        if event is not None:
            self._display.emit(event)

    def _end(self, build: WatchedBuild, result: Mapping[str, Any] | None, said: str) -> None:
        if result is None:
            build.exit_code, build.error = EXIT_BUG, said or "the build ended without a result"
        else:
            build.exit_code, build.error = result["exit_code"], result["error"]
            build.rows, build.skipped = result["rows"], result["skipped"]
        if build.is_good:
            build.moved = difference(self._good, build.rows) if self._good is not None else ()
            self._good = build.rows
        self._display.end(build)

    def _wait(self, keyboard: Keyboard) -> list[str]:
        while not (changed := self._changes.found()):
            _heed(keyboard)
            pause(_POLL_S)
        return self._changes.settled(changed)


def _heed(keyboard: Keyboard) -> None:
    if _QUIT in keyboard.pressed():
        raise QuitError
