"""A recipe's sections, as the step kinds that they belong to know them."""

from __future__ import annotations

from typing import Any

from onnxbuild.core.host import TARGETS, HostFacts
from onnxbuild.core.recipe import Recipe


def typed(options: object) -> Any:
    """A section's options; their type is the step kind's own."""
    return options


def target_of(recipe: Recipe, host: HostFacts) -> HostFacts:
    """What the recipe's models will run on: the CPU that it names, or this machine's."""
    return TARGETS.get(typed(recipe.sections["target"]).cpu, host)
