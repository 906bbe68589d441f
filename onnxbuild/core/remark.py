"""A remark on a recipe: what it allows and seldom means."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.recipe import Location


@dataclass(frozen=True, slots=True)
class Remark:
    """One sentence, and the place in the recipe that it is about.

    Attributes:
        text: The sentence.
        location: None where it is about no place alone.
    """

    text: str
    location: Location | None = None

    def __str__(self) -> str:
        return f"{self.location}: {self.text}" if self.location is not None else self.text
