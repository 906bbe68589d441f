"""Greedy decoding with a model that gives logits and takes its state back: which inputs are what, and the loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.axis import is_sum, symbols_of
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.data.states import empty_state, growth_in, next_state, state_inputs
from onnxbuild.onnxkit.model.tensor_types import numpy_dtype

if TYPE_CHECKING:
    import numpy as np

    from onnxbuild.onnxkit.data.states import Feeds, Run


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
        growth: How the state grows; None for one of one size, whose model takes one token at a time.
    """

    tokens: DummyInput
    masks: tuple[DummyInput, ...]
    positions: tuple[DummyInput, ...]
    inputs: tuple[DummyInput, ...]
    growth: Growth | None

    @property
    def takes_padding(self) -> bool:
        """Whether prompts of different lengths can be one batch."""
        return any(is_sum(each.shape[-1]) for each in self.masks)


def roles_of(inputs: Sequence[DummyInput]) -> Roles:
    """Find what each input is, by its declaration.

    Raises:
        RolesError: There is no state, an input is neither ids, mask, positions nor state, or there are no ids.
    """
    growth = growth_in(inputs)
    if not state_inputs(inputs):
        raise RolesError("it has no `state`")
    tokens, masks, positions = [], [], []
    for each in inputs:
        if each.fed_by:
            continue
        last = each.shape[-1] if each.shape else 0
        is_new = last == 1 if growth is None else growth.by in symbols_of(last)
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


def decode(
    run: Run,
    roles: Roles,
    prompts: Sequence[np.ndarray],
    count: int,
    *,
    logits: str,
    forced: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Yield the logits of the next token of each prompt, shape (prompts, vocabulary), `count` times.

    The most likely token follows, or that of `forced`. Prompts of different lengths are padded on their left with 0,
    masked, and their positions begin at their own first token.

    Args:
        prompts: Ids, each of shape (length,), at least one.
        count: Number of tokens.
        logits: Name of the output, shape (batch, sequence, vocabulary).
        forced: Tokens to go on with, shape (prompts, count); None for the model's own.
    """
    import numpy as np

    length = max(map(len, prompts))
    ids = np.stack([np.pad(each, (length - len(each), 0)) for each in prompts])
    mask = np.stack([np.arange(length) >= length - len(each) for each in prompts])
    state = empty_state(_feeds(roles, ids[:, :1], mask[:, :1]), roles.inputs)
    if roles.growth is None:
        for seen in range(1, length):
            part = _feeds(roles, ids[:, seen - 1 : seen], mask[:, :seen])
            state = next_state(run(part | state), roles.inputs)
        ids = ids[:, -1:]
    for n in range(count):
        outputs = run(_feeds(roles, ids, mask) | state)
        last = outputs[logits][:, -1]
        yield last
        ids = (last.argmax(-1) if forced is None else forced[:, n])[:, None]
        state = next_state(outputs, roles.inputs)
        mask = np.concatenate([mask, np.ones_like(ids, bool)], axis=1)


def whole_text(roles: Roles, ids: np.ndarray) -> Feeds:
    """A text as one first call: its state is empty.

    Args:
        roles: Of a model whose state grows.
        ids: Shape (length,).
    """
    import numpy as np

    feeds = _feeds(roles, ids[None], np.ones((1, len(ids)), bool))
    return {**feeds, **empty_state(feeds, roles.inputs)}


def _feeds(roles: Roles, ids: np.ndarray, mask: np.ndarray) -> Feeds:
    """Feeds without the state.

    Args:
        ids: Of the new tokens, (batch, new).
        mask: Of all tokens so far, (batch, past + new).
    """
    import numpy as np

    new = ids.shape[1]
    counted = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, -new:]
    feeds: Mapping[str, np.ndarray] = {
        roles.tokens.name: ids,
        **{each.name: mask if is_sum(each.shape[-1]) else mask[:, -new:] for each in roles.masks},
        **{each.name: counted if len(each.shape) > 1 else counted[0] for each in roles.positions},
    }
    declared = {each.name: each for each in roles.inputs}
    return {
        name: np.ascontiguousarray(array.astype(numpy_dtype(declared[name].dtype)))
        for name, array in feeds.items()
    }


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities along the last axis, float64."""
    import numpy as np

    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    found: np.ndarray = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return found
