"""Steps that are to run and have not started: a heap, so that thousands may wait."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from onnxbuild.engine.pending import Pending

Rank = tuple[bool, bool, int, int]


class WaitingLine:
    """Queue of pending steps, in the order of their ranks.

    Args:
        rank: Step name -> its rank; no two are equal.
        state: Changes whenever ranks do.
    """

    def __init__(self, rank: Callable[[str], Rank], state: Callable[[], int]) -> None:
        self._rank = rank
        self._state = state
        self._ranked_at = state()
        self._heap: list[tuple[Rank, Pending]] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, pending: Pending) -> None:
        """Let a step wait."""
        heapq.heappush(self._heap, self._ranked(pending))

    def pop(self) -> Pending:
        """Take the first out of the line."""
        if self._ranked_at != self._state():
            self._ranked_at = self._state()
            self._heap = [self._ranked(pending) for _, pending in self._heap]
            heapq.heapify(self._heap)
        return heapq.heappop(self._heap)[1]

    def _ranked(self, pending: Pending) -> tuple[Rank, Pending]:
        return self._rank(pending.step.name), pending
