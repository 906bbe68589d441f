"""Names of recipes and of their parts, as they are printed and as a person types them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_BETWEEN = "@"


@dataclass(frozen=True, slots=True)
class RecipeName:
    """Name of a recipe, printed as `bert`, `bert@size=8,depth=2` or `whisper@encoder`.

    Attributes:
        base: `name:` of the recipe's file.
        member: Of a file that holds several, which one it is: a component, a combination of the matrix, or
            both, `encoder,size=8`; else empty.
    """

    base: str
    member: str = ""

    @classmethod
    def parse(cls, text: str) -> RecipeName:
        """Return the name that was typed, or that a file of the store or a lock holds.

        All that reads a name back does it here; of a recipe that is loaded, see `Recipe.base`.
        """
        base, _, member = text.partition(_BETWEEN)
        return cls(base, member)

    def includes(self, other: RecipeName) -> bool:
        """Return whether a recipe is meant: `whisper` and `whisper@size=8` include `whisper@encoder,size=8`."""
        asked = set(filter(None, self.member.split(",")))
        return self.base == other.base and asked.issubset(other.member.split(","))

    def sibling(self, component: str) -> RecipeName:
        """Return the name of another component, at the same combination of a matrix; of all of them where it is empty."""
        return RecipeName(
            self.base, ",".join(filter(None, (component, *self.member.split(",")[1:])))
        )

    def __str__(self) -> str:
        return f"{self.base}{_BETWEEN}{self.member}" if self.member else self.base


@dataclass(frozen=True, slots=True)
class TypedName:
    """A name that was typed; every verb and option reads it with this.

    Attributes:
        recipe: What stands before the last colon: a recipe's name, of a file with several with or without
            `@COMPONENT` or `@KEY=VALUE`, or its file; empty where there is no colon.
        local: What stands after it: a variant, a folder below out/RECIPE/, or a step.
    """

    recipe: str
    local: str

    @classmethod
    def parse(cls, text: str) -> TypedName:
        """Return the parts of `bert:int8`, `recipes/bert.yaml:int8/quantize` or `int8`."""
        recipe, _, local = text.rpartition(":")  # a path may hold a colon, a step or variant none
        return cls(recipe, local)

    def __str__(self) -> str:
        return ":".join(filter(None, (self.recipe, self.local)))

    def recipes_of(self, files: Mapping[str, str]) -> list[str]:
        """Return the names of the recipes that `recipe` means; all of them where it is empty.

        A recipe's own name comes first, then one that includes it, then that of its component, then the
        path of its file, then the file's name without its ending.

        Args:
            files: Name of each recipe -> its file, as typed.
        """
        if not self.recipe:
            return list(files)
        if self.recipe in files:
            return [self.recipe]
        asked = RecipeName.parse(self.recipe)
        included = [name for name in files if asked.includes(RecipeName.parse(name))]
        if included:
            return included
        parts = [name for name in files if self.recipe in RecipeName.parse(name).member.split(",")]
        if parts:
            return parts
        path = os.path.abspath(self.recipe)  # noqa: PTH100 - resolves `..`, keeps links
        of_file = [name for name, file in files.items() if os.path.abspath(file) == path]  # noqa: PTH100
        if of_file or asked.member:
            return of_file
        return [name for name, file in files.items() if Path(file).stem == self.recipe]
