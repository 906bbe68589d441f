"""One value that has changed, is new or is gone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One value that has changed, is new or is gone.

    Attributes:
        subject: Name of the value: `opset`, `attribute 'axis' of Concat 'join'`.
        old: Old value as text; empty if it is new.
        new: New value as text; empty if it is gone.
    """

    subject: str
    old: str
    new: str

    def __str__(self) -> str:
        if not self.old:
            return f"{self.subject} is new: {self.new}"
        if not self.new:
            return f"{self.subject} is gone; it was {self.old}"
        return f"{self.subject}: {self.old} -> {self.new}"
