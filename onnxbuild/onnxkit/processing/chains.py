"""Plan of a pipeline: operations in their places, and chains from raw inputs to the model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.processing.values import ValueType


@dataclass(frozen=True, slots=True)
class PlannedOperation:
    """One operation in its place.

    Attributes:
        section: PREPROCESS or POSTPROCESS.
        position: In that list.
        name: The operation's.
        options: Its options.
        takes: Names of values in the merged graph, and their types.
        gives: The same.
    """

    section: str
    position: int
    name: str
    options: Any
    takes: Mapping[str, ValueType]
    gives: Mapping[str, ValueType]

    @property
    def prefix(self) -> str:
        """Prefix of the names of its values and nodes."""
        return f"{self.section}/{self.position}"


@dataclass(frozen=True, slots=True)
class Feed:
    """A value that one of the model's inputs takes.

    Attributes:
        input: The model's input.
        value: Name of the value in the merged graph.
        type: What is known of it.
        wanted: The input's dtype; empty where it is not known.
    """

    input: str
    value: str
    type: ValueType
    wanted: str

    @property
    def is_converted(self) -> bool:
        """Whether the model takes another dtype."""
        return bool(self.type.dtype and self.wanted) and self.type.dtype != self.wanted


@dataclass(frozen=True, slots=True)
class InputChain:
    """Chain from a raw input to one of the model's inputs, or to several.

    Attributes:
        source: The raw input.
        axes: Those that it brings.
        feeds: What the model takes of it.
        operations: In order.
    """

    source: DummyInput
    axes: tuple[Axis, ...]
    feeds: tuple[Feed, ...]
    operations: tuple[PlannedOperation, ...]


def type_of(declared: DummyInput) -> ValueType:
    """The type of an input that a recipe declares."""
    return ValueType(declared.dtype, tuple(declared.shape))


def fed_by(chains: Sequence[InputChain]) -> set[str]:
    """The model's inputs that are made of raw ones."""
    return {feed.input for each in chains for feed in each.feeds}
