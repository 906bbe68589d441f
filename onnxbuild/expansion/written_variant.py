"""A variant as a recipe has it, before it is known to be sound."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.recipe import Location, Variant
from onnxbuild.document.node import Node


@dataclass(frozen=True, slots=True)
class WrittenVariant:
    """A variant as the recipe has it, faults and all.

    Attributes:
        name: Its key; of a single mode, the precision.
        at: Where it stands.
        node: A mapping, or the mode alone.
        parsed: None where it has faults.
    """

    name: str
    at: Location
    node: Node
    parsed: Variant | None

    @property
    def mode(self) -> object:
        """Value that is written as its mode; None if nothing is."""
        if isinstance(self.node.value, str):
            return self.node.value
        mode = self.node.child("mode")
        return None if mode is None else mode.value
