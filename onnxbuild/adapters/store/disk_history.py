"""Remember what each step's name was last built from, in the index."""

from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.adapters.disk.index import Index
from onnxbuild.core.action import Action, Expense

REUSED = "found in the store"
OWN_HOME = ".."
"""Home of the project whose store is the folder artifacts/ in it."""


class DiskHistory:
    """History in an index.

    Where this project has not built a step yet, what another project of this store last built under
    its name is the best that is known of it.

    Args:
        home: Where the project is, from `home_of`.
    """

    def __init__(self, index: Index, home: str = OWN_HOME) -> None:
        self._index = index
        self._suffix = "" if home == OWN_HOME else f"\n{home}"
        self._used: dict[str, tuple[Action, list[str], str, int, float]] = {}

    def last(self, step: str) -> Mapping[str, Any] | None:
        """The last action's JSON under this name."""
        found = self._index.step(self._known(step))
        return found[0] if found else None

    def _own(self, step: str) -> str:
        """The name that the index has for a step of this project."""
        return f"{step}{self._suffix}"

    def _known(self, step: str) -> str:
        """The name in the index of this project's step, or of another project's of the same name."""
        own = self._own(step)
        return own if self._index.step_key(own) else self._index.newest_step(step) or own

    def remember(
        self, step: str, action: Action, reasons: Sequence[str], log: str, expense: Expense
    ) -> None:
        """Keep what a step was built from, why, and what memory and time it took."""
        spent = expense.peak_bytes, float(expense.wall_s)
        self._index.save_steps({self._own(step): (action, list(reasons), log, *spent)})

    def used(self, step: str, action: Action) -> None:
        """Note that a step's result was reused for this action."""
        own = self._own(step)
        if self._index.step_key(own) == action.key:
            return
        found = self._index.step(own)
        if found is None:
            self._used[own] = (action, [REUSED], "", 0, 0.0)
        else:
            self._used[own] = (action, *found[1:])

    def save(self) -> None:
        """Write what `used` noted."""
        self._index.save_steps(self._used)
        self._used = {}

    def last_key(self, step: str) -> str | None:
        """The last action's key under this name."""
        return self._index.step_key(self._known(step))

    def peak_bytes(self, step: str) -> int | None:
        """Peak memory of the last run under this name."""
        found = self._index.step(self._known(step))
        return found[3] if found else None

    def wall_s(self) -> Mapping[str, float]:
        """Step -> how long it took last time, in seconds; of those that ran here, in this project or another."""
        known = self._index.wall_s()
        others = {name.partition("\n")[0]: found for name, found in known.items()}
        own = {
            name.removesuffix(self._suffix): found
            for name, found in known.items()
            if self._own(name.partition("\n")[0]) == name
        }
        return others | own

    def story(self, step: str) -> tuple[list[str], str] | None:
        """(reasons of this project's last run, its log) under this name."""
        found = self._index.step(self._own(step))
        return (found[1], found[2]) if found else None
