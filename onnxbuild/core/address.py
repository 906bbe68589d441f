"""Where a step stands: recipe, variant, target. Made by the resolver, and never read out of a name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepAddress:
    """What a step's name says, as data.

    Names of recipes, variants and targets may hold dashes and dots, and equal a step's: a variant
    may be called `check-fast`, a recipe `session-demo`. A name is for people; code reads this.

    Attributes:
        recipe: The recipe's name.
        step: What it does: `export`, `validate`.
        variant: The variant or format that it belongs to; empty for a step that variants share.
        trial: Of a search, `VARIANT/TRIAL`; else empty.
        artifact: Of what is made ahead of time, its kind: `ort`, `optimized`; else empty.
        target: Where it runs, if that is not the recipe's first target; for `provider`, always.
    """

    recipe: str
    step: str
    variant: str = ""
    trial: str = ""
    artifact: str = ""
    target: str = ""

    @property
    def bundle(self) -> str:
        """Name of the folder that it makes a part of; empty for a step that variants share."""
        return f"{self.variant}-{self.artifact}" if self.artifact else self.variant

    @property
    def local(self) -> str:
        """Its name in the recipe: `export`, `int8/validate-cuda`."""
        above = self.trial or self.bundle
        name = f"{self.step}-{self.target}" if self.target else self.step
        return f"{above}/{name}" if above else name

    def __str__(self) -> str:
        return f"{self.recipe}:{self.local}"
