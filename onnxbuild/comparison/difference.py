"""One difference of two sides, and the groups that differences are in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from onnxbuild.onnxkit.differences.value_change import ValueChange


class Group(StrEnum):
    """Group that a difference is in; the most important first."""

    VERDICTS = "verdicts"
    ACCURACY = "accuracy"
    SIGNATURE = "signature"
    RECIPE = "recipe"
    INPUTS = "inputs"
    TOOLS = "tools"
    GRAPH = "graph"
    WEIGHTS = "weights"
    FILES = "files"
    SIZE = "size"


ORDER = tuple(Group)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        group: What it is in.
        sentence: For a person.
        data: The same as JSON values; of several variants, of the first.
        change: The same as one value that has changed; None if it is no such thing.
        variants: Names of the bundles that it is of; empty for all of a side.
        data_by_variant: Variant -> its data, of those where it is not `data`.
    """

    group: Group
    sentence: str
    data: dict[str, Any] = field(default_factory=dict)
    change: ValueChange | None = None
    variants: tuple[str, ...] = ()
    data_by_variant: dict[str, dict[str, Any]] = field(default_factory=dict)

    def of(self, variant: str) -> Difference:
        """The same, of one variant."""
        return replace(self, variants=(variant,))

    def merged(self, other: Difference) -> Difference:
        """The same, of another's variants, too; their sentences are equal, their places may not be."""
        own = dict.fromkeys(other.variants, other.data) if other.data != self.data else {}
        return replace(
            self,
            variants=(*self.variants, *other.variants),
            data_by_variant={**self.data_by_variant, **own},
        )
