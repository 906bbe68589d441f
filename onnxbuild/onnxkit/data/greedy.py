"""Roles of a decoder's inputs, by their declarations: ids, masks, positions, state."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.axis import is_sum, symbols_of
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.data.states import growth_in, state_inputs


class RolesError(ValueError):
    """An input of the model is nothing that decoding can feed; the text is a clause."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The inputs of a decoder by their purpose.

    Attributes:
        tokens: Ids of the new tokens, shape (batch, sequence).
        masks: Ones and zeros; those over the past and the new tokens, or over the new ones.
        positions: Positions of the new tokens.
        inputs: All inputs, as the recipe declares them.
        growth: How the state grows; None for one of one size, whose model takes one token at a time, as one does that
            grows by one.
    """

    tokens: DummyInput
    masks: tuple[DummyInput, ...]
    positions: tuple[DummyInput, ...]
    inputs: tuple[DummyInput, ...]
    growth: Growth | None

    @property
    def takes_padding(self) -> bool:
        """Whether prompts of different lengths can be one batch: a mask leaves out what all of the state has of padding."""
        all_grow = all(each.growth is not None for each in state_inputs(self.inputs))
        return all_grow and any(is_sum(each.shape[-1]) for each in self.masks)

    def names(self, logits: str) -> dict[str, Any]:
        """Return `ids`, `masks`, `positions`, `logits`, the axes `past` and `new`, None for those of no growth, and `in_place`."""
        return {
            "ids": self.tokens.name,
            "masks": tuple(each.name for each in self.masks),
            "positions": tuple(each.name for each in self.positions),
            "logits": logits,
            "past": None if self.growth is None else self.growth.axis,
            "new": (self.growth and self.growth.by) or None,
            "in_place": self.growth is not None and self.growth.in_place,
        }

    def decoder(self, logits: str) -> Mapping[str, Any]:
        """Return the decoder as `decode` takes it, JSON values.

        Args:
            logits: Name of the output.
        """
        return {
            **self.names(logits),
            "inputs": [
                {"name": each.name, "dtype": each.dtype, "shape": list(each.shape)}
                for each in self.inputs
            ],
            "state": {each.name: each.fed_by for each in state_inputs(self.inputs)},
        }


def roles_of(inputs: Sequence[DummyInput], given: Collection[str] = ()) -> Roles:
    """Find what each input is, by its declaration.

    Args:
        given: Names of inputs that others give, such as an encoder.

    Raises:
        RolesError: There is no state, an input is neither ids, mask, positions nor state, or there are no ids.
    """
    growth = growth_in(inputs)
    if not state_inputs(inputs):
        raise RolesError("it has no `state`")
    tokens, masks, positions = [], [], []
    for each in inputs:
        if each.fed_by or each.name in given:
            continue
        last = each.shape[-1] if each.shape else 0
        is_new = growth.by in symbols_of(last) if growth and growth.by else last == 1
        if growth and not growth.by:
            is_new = is_new or growth.axis in symbols_of(last)
        if each.arange is not None:
            positions.append(each)
        elif is_new and (each.mask == "left" or each.fill == 1):
            masks.append(each)
        elif is_new and each.dtype in ("int64", "int32") and each.fill is None:
            tokens.append(each)
        else:
            raise RolesError(
                f"input '{each.name}' is neither ids of tokens, nor a mask (`mask: left`), nor positions (`arange`), nor state"
            )
    if len(tokens) != 1:
        shown = " and ".join(f"'{each.name}'" for each in tokens) or "none"
        raise RolesError(f"one input must be ids of tokens, and {shown} may be")
    return Roles(tokens[0], tuple(masks), tuple(positions), tuple(inputs), growth)
