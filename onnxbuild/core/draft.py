"""Draft of a first recipe, from the model that a callable returned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Draft:
    """The parts of a recipe that can be known of a model, and what has to be filled in.

    Attributes:
        recipe: Keys of a recipe, as JSON values; a guess stands where a part is not known.
        comments: Dotted key -> where its value comes from, and what was tried.
        holes: Dotted key -> what to write in place of the guess.
        files: What the model is read from, if a callable gives its path.
        code: A module in Python that the recipe names, to write next to it; empty for none.
    """

    recipe: Mapping[str, Any]
    comments: Mapping[str, str] = field(default_factory=dict)
    holes: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    code: str = ""


def no_draft(_model: object) -> Draft | None:
    """The hook of a frontend that takes no callable's model, or can say nothing of one."""
    return None
