"""The error of a build in which a step or a gate failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbuild.adapters.console.words import Words
from onnxbuild.core.errors import BuildError
from onnxbuild.core.event import Event, StepFailed

if TYPE_CHECKING:
    from onnxbuild.python.build import Build


class FailedBuildError(BuildError):
    """A step or a gate failed.

    Args:
        lines: What the terminal prints of the failures.
        exit_code: What the command line would end with.

    Attributes:
        build: What was built, with `failures`.
        exit_code: 1 a step failed, 3 a gate failed, 5 an undeclared input.
    """

    def __init__(self, build: Build, lines: Sequence[str], exit_code: int) -> None:
        super().__init__("\n".join([*lines, build.summary]))
        self.build = build
        self.lines = tuple(lines)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        return (FailedBuildError, (self.build, self.lines, self.exit_code))


class FailureNotes:
    """A sink that notes what a terminal would print of failures.

    Attributes:
        lines: Those.
        logs: Step -> path of its log.
    """

    def __init__(self) -> None:
        self._words = Words(verbose=False)
        self.lines: list[str] = []
        self.logs: dict[str, str] = {}

    def emit(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, StepFailed):
            self.lines += self._words.lines(event)
            self.logs[event.step] = event.log
