"""`state` -> the inputs and outputs that it stands for, and how forward takes them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from onnxbuild.core.axis import one_spelling
from onnxbuild.core.recipe import FROM, DummyInput
from onnxbuild.core.state import GROWING, STATE, Growth, State, StateTensor, growth_of
from onnxbuild.document.node import plain
from onnxbuild.document.parts import Parts

PRESENT = "present"
"""Begins the names of outputs, where the recipe says nothing."""

PLACEHOLDER = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True, slots=True)
class WrittenState:
    """One entry of `state`, without faults of the schema.

    Attributes:
        name: Its key.
        parameter: Forward's.
        each: What its tensors differ in -> the values.
        input, output: Patterns of names; `output` is empty where it is constant.
        by: The axis of the new elements, if it is named.
        source: Pattern of the outputs of another component that it is, COMPONENT.OUTPUT; empty for none.
    """

    name: str
    parameter: str
    each: Mapping[str, tuple[int | str, ...]]
    input: str
    output: str
    dtype: str
    shape: tuple[int | str, ...]
    update: str
    by: str
    source: str

    def tensors(self) -> Iterator[StateTensor]:
        """Yield its tensors, the last of `each` fastest."""
        for values in product(*self.each.values()):
            of = dict(zip(self.each, values, strict=True))
            yield StateTensor(named(self.input, of), named(self.output, of), of)

    def growth(self, inputs: Iterable[DummyInput]) -> Growth | None:
        """Return how it grows, as the shapes of the other inputs say; None if it doesn't, or they don't."""
        if self.update not in GROWING:
            return None
        found = growth_of(self.shape, [each.shape for each in inputs], self.by)
        in_place = self.update == "in_place"
        return None if found is None else replace(found, in_place=in_place)

    def inputs(self, growth: Growth | None) -> Iterator[DummyInput]:
        """Yield the graph's inputs for it."""
        for each in self.tensors():
            yield DummyInput(each.input, self.dtype, self.shape, fed_by=each.output, growth=growth)


@dataclass(frozen=True, slots=True)
class States:
    """Inputs, outputs and states that `state` adds to a recipe."""

    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    states: tuple[State, ...]


def written_states(parts: Parts) -> dict[str, WrittenState]:
    """The entries of `state` that have no fault of the schema."""
    node = parts.node(STATE)
    members = {} if node is None else node.members
    return {
        name: _written(name, plain(member.node))
        for name, member in members.items()
        if parts.sound(STATE, name)
    }


def read_states(parts: Parts) -> States:
    """The inputs, outputs and states of a recipe; those of one parameter together."""
    written = written_states(parts).values()
    tensors: dict[str, list[StateTensor]] = {}
    for each in written:
        tensors.setdefault(each.parameter, []).extend(each.tensors())
    states = tuple(State(name, tuple(found)) for name, found in tensors.items())
    own = parts.inputs.values()
    inputs = {each.name: each for state in written for each in state.inputs(state.growth(own))}
    ordered = (inputs[each.input] for state in states for each in state.tensors)
    return States(tuple(ordered), tuple(n for state in states for n in state.outputs), states)


def named(pattern: str, of: Mapping[str, int | str]) -> str:
    """A pattern with its placeholders replaced; those of another name stay."""
    return PLACEHOLDER.sub(lambda found: str(of.get(found[1], found[0])), pattern)


def _written(name: str, value: Mapping[str, Any]) -> WrittenState:
    parameter = str(value.get("parameter", name))
    each = {
        key: tuple(range(of)) if isinstance(of, int) else tuple(of)
        for key, of in value["each"].items()
    }
    places = "".join(f".{{{key}}}" for key in each)
    update = str(value.get("update", "grows"))
    return WrittenState(
        name,
        parameter,
        each,
        str(value.get("input", parameter + places)),
        "" if update == "constant" else str(value.get("output", PRESENT + places)),
        str(value.get("dtype", "float32")),
        tuple(map(one_spelling, value["shape"])),
        update,
        str(value.get("by", "")),
        str(value.get(FROM, "")),
    )
