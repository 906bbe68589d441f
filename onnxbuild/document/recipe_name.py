"""The name of a recipe: its own, and of a matrix the combination."""

from __future__ import annotations

from dataclasses import dataclass

_BETWEEN = "@"


@dataclass(frozen=True, slots=True)
class RecipeName:
    """Name of a recipe, printed as `bert`, or `bert@size=8,depth=2`.

    Attributes:
        base: `name:` of the recipe's file.
        combination: Of a matrix, `size=8,depth=2`; else empty.
    """

    base: str
    combination: str = ""

    @classmethod
    def parse(cls, text: str) -> RecipeName:
        """Return the name that was typed, or that a file of the store or a lock holds.

        All that reads a name back does it here; of a recipe that is loaded, see `Recipe.base`.
        """
        base, _, combination = text.partition(_BETWEEN)
        return cls(base, combination)

    def __str__(self) -> str:
        return f"{self.base}{_BETWEEN}{self.combination}" if self.combination else self.base
