"""A model's state: tensors that one call gives and the next call takes, such as a cache of keys and values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from onnxbuild.core.axis import Dimension, sums_of, symbols_of

STATE = "state"
"""Key of a recipe."""

Update = Literal["grows", "in_place", "replaced", "constant"]
"""Effect of a call on a state: it adds elements along one axis, in a new tensor or in one buffer that has room for them;
gives others of the same shape; or changes nothing."""

GROWING: tuple[Update, ...] = ("grows", "in_place")


@dataclass(frozen=True, slots=True)
class StateTensor:
    """One tensor of a state.

    Attributes:
        input: The graph's input.
        output: The output that is the input of the next call; empty where a call changes nothing.
        of: What the tensor is: `{"layer": 0, "part": "key"}`.
    """

    input: str
    output: str = ""
    of: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class State:
    """A parameter of forward: a list of tensors, or a Cache of transformers', that goes out of one call and into the next.

    Attributes:
        parameter: Forward's parameter.
        tensors: In the order in which forward takes them; it returns those with an output in the same order,
            after all other outputs.
    """

    parameter: str
    tensors: tuple[StateTensor, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs that forward gives for it."""
        return tuple(each.output for each in self.tensors if each.output)


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of a state: a call adds as many elements along `axis` as `by` has.

    Attributes:
        axis: The axis of the elements that are there: `past`.
        by: The axis of the new ones: `sequence`; empty where each call adds one.
        in_place: Whether the runtime may bind one buffer as input and output, longer than what is in it.
    """

    axis: str
    by: str = ""
    in_place: bool = field(default=False, metadata={"sparse": True})


def growth_of(
    shape: Sequence[Dimension], others: Sequence[Sequence[Dimension]], by: str = ""
) -> Growth | None:
    """Return how a state grows; None where its shape and those of the other inputs don't say.

    A sum says it (`past + sequence`, the size of a mask); else the only axis of the state after the first, and the
    only axis of the others that the state has not; or `past + 1`.

    Args:
        shape: The state's.
        others: Those of the inputs that are no state.
        by: The axis of the new elements, where the recipe names it.
    """
    own = {symbol for each in shape for symbol in symbols_of(each)}
    for each in sums_of(others):
        parts = symbols_of(each)
        old, new = [p for p in parts if p in own], [p for p in parts if p not in own]
        if len(old) == len(new) == 1 and by in ("", new[0]):
            return Growth(old[0], new[0])
    inner = {symbol for each in shape[1:] for symbol in symbols_of(each)}
    fresh = {symbol for each in others for part in each for symbol in symbols_of(part)} - own
    fresh = fresh & {by} if by else fresh
    if len(inner) == len(fresh) == 1:
        return Growth(inner.pop(), fresh.pop())
    ones = [axis for axis in inner if f"{axis} + 1" in sums_of(others)]
    return Growth(ones[0]) if len(ones) == 1 and not by else None
