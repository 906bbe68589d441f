"""What each step's name was last built from, kept in the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.adapters.disk.index import Index
from onnxbuild.core.action import Action

REUSED = "found in the store"


class DiskHistory:
    """History in an index.

    Args:
        index: The store's index.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._used: dict[str, tuple[Action, list[str], str, int]] = {}

    def last(self, step: str) -> Mapping[str, Any] | None:
        """The last action's JSON under this name."""
        found = self._index.step(step)
        return found[0] if found else None

    def remember(
        self, step: str, action: Action, reasons: Sequence[str], log: str, peak_bytes: int
    ) -> None:
        """Keep what a step was built from, why, and what memory it took."""
        self._index.save_steps({step: (action, list(reasons), log, peak_bytes)})

    def used(self, step: str, action: Action) -> None:
        """Note that a step's result was reused for this action."""
        if self._index.step_key(step) == action.key:
            return
        found = self._index.step(step)
        if found is None:
            self._used[step] = (action, [REUSED], "", 0)
        else:
            self._used[step] = (action, found[1], found[2], found[3])

    def save(self) -> None:
        """Write what `used` noted."""
        self._index.save_steps(self._used)
        self._used = {}

    def last_key(self, step: str) -> str | None:
        """The last action's key under this name."""
        return self._index.step_key(step)

    def peak_bytes(self, step: str) -> int | None:
        """Peak memory of the last run under this name."""
        found = self._index.step(step)
        return found[3] if found else None

    def story(self, step: str) -> tuple[list[str], str] | None:
        """(reasons of the last run, its log) under this name."""
        found = self._index.step(step)
        return (found[1], found[2]) if found else None
