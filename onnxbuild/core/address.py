"""Address of a step: recipe, variant, target. Made by the resolver, and never read out of a name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepAddress:
    """Parts of a step's name, as data.

    Names of recipes, variants and targets may hold dashes and dots, and equal a step's: a variant
    may be called `check-fast`, a recipe `session-demo`. A name is for people; code reads this.

    Attributes:
        recipe: The recipe's name.
        step: What it does: `export`, `validate`.
        variant: The variant or format that it belongs to; empty for a step that variants share.
        trial: Of a search over variants, the trial's name; else empty.
        further: Of a bundle that is made of a variant besides its own, that bundle's: `pipeline`; else empty.
        artifact: Of what is made of either ahead of time, or as a package, its format: `ort`, `wheel`; else empty.
        about: The variant that a step measures without being a part of its folder; else empty.
        target: Where it runs, if that is not the recipe's first target; for `provider`, always.
    """

    recipe: str
    step: str
    variant: str = ""
    trial: str = ""
    further: str = ""
    artifact: str = ""
    about: str = ""
    target: str = ""

    @property
    def bundle(self) -> str:
        """Name of the folder that it makes a part of; empty for a step that variants share."""
        return "-".join(filter(None, (self.variant, self.further, self.artifact)))

    @property
    def owner(self) -> str:
        """First part of its name: a bundle, or `VARIANT/TRIAL`; empty for a step that variants share."""
        return f"{self.variant}/{self.trial}" if self.trial else self.bundle

    @property
    def task(self) -> str:
        """Task of the step, wherever it runs: `validate`, `int8-load-times`."""
        return f"{self.about}-{self.step}" if self.about else self.step

    @property
    def task_there(self) -> str:
        """The same, with its target: `validate-cuda`."""
        return f"{self.task}-{self.target}" if self.target else self.task

    @property
    def local(self) -> str:
        """Its name in the recipe: `export`, `int8/validate-cuda`."""
        return f"{self.owner}/{self.task_there}" if self.owner else self.task_there

    def __str__(self) -> str:
        return f"{self.recipe}:{self.local}"
