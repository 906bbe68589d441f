"""Greedy decoding: the most likely token, and again, with a state that goes round. A package has a copy: NumPy is all that it imports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray]
    Run = Callable[[dict[str, np.ndarray]], Arrays]
    """Input -> array, output -> array."""


def decode(
    run: Run,
    decoder: Mapping[str, Any],
    prompts: Sequence[np.ndarray],
    count: int,
    *,
    given: Mapping[str, np.ndarray] | None = None,
    forced: np.ndarray | None = None,
    at_once: int = 1,
) -> Iterator[np.ndarray]:
    """Yield the logits of the next token of each prompt, shape (prompts, vocabulary), `count` times.

    The most likely token follows, or that of `forced`. Prompts of different lengths are padded on their left with 0,
    masked, and their positions begin at their own first token.

    Args:
        run: The model.
        decoder: Its inputs by their purpose: `ids`, `masks`, `positions`; `state`, input -> output that feeds it;
            `inputs`, each with `name`, `dtype` and `shape`; the output `logits`, shape (batch, new, vocabulary); and
            `new`, the axis of the new tokens, None for a model that takes one at a time.
        prompts: Ids, each of shape (length,), at least one.
        count: Number of tokens.
        given: Inputs that are the same in every call: what an encoder gives.
        forced: Tokens to go on with, shape (prompts, count); None for the model's own.
        at_once: How many of `forced` go into one call after the first; 1 for a model that takes one at a time.
    """
    import numpy as np

    length = max(map(len, prompts))
    ids = np.stack([np.pad(each, (length - len(each), 0)) for each in prompts])
    mask = np.stack([np.arange(length) >= length - len(each) for each in prompts])
    same = dict(given or {})
    state = empty_state(decoder, {**_feeds(decoder, ids[:, :1], mask[:, :1]), **same})
    if decoder["new"] is None:
        for seen in range(1, length):
            part = _feeds(decoder, ids[:, seen - 1 : seen], mask[:, :seen])
            state = _next_state(decoder, run({**part, **same, **state}))
        ids = ids[:, -1:]
    done, new = 0, 1
    while True:
        outputs = run({**_feeds(decoder, ids, mask), **same, **state})
        last = outputs[decoder["logits"]][:, -new:]
        yield from last.swapaxes(0, 1)
        done += new
        if done == count:
            return
        new = 1 if forced is None else min(at_once, count - done)
        ids = last.argmax(-1)[:, -1:] if forced is None else forced[:, done - 1 : done - 1 + new]
        state = _next_state(decoder, outputs)
        mask = np.concatenate([mask, np.ones_like(ids, bool)], axis=1)


def whole_text(decoder: Mapping[str, Any], ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return the feeds of a text as one first call, the empty state with them.

    Args:
        decoder: As `decode` takes it, one whose state grows.
        ids: Shape (length,).
    """
    import numpy as np

    feeds = _feeds(decoder, ids[None], np.ones((1, len(ids)), bool))
    return {**feeds, **empty_state(decoder, feeds)}


def _feeds(decoder: Mapping[str, Any], ids: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
    """Feeds of the new tokens.

    Args:
        ids: Of the new tokens, (batch, new).
        mask: Of all tokens so far, (batch, past + new).
    """
    import numpy as np

    new = ids.shape[1]
    declared = {each["name"]: each for each in decoder["inputs"]}
    counted = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, -new:]
    feeds = {decoder["ids"]: ids}
    for name in decoder["masks"]:
        feeds[name] = mask if "+" in str(declared[name]["shape"][-1]) else mask[:, -new:]
    for name in decoder["positions"]:
        feeds[name] = counted if len(declared[name]["shape"]) > 1 else counted[0]
    return {
        name: np.ascontiguousarray(array.astype(declared[name]["dtype"]))
        for name, array in feeds.items()
    }


def empty_state(decoder: Mapping[str, Any], feeds: Arrays) -> dict[str, np.ndarray]:
    """The state before a first call: no elements along an axis that no other input has, else zeros."""
    import numpy as np

    declared = {each["name"]: each for each in decoder["inputs"]}
    sizes: dict[str, int] = {}
    for name, array in feeds.items():
        for dimension, size in zip(declared[name]["shape"], array.shape):  # noqa: B905 - Python 3.9 runs this, too
            sizes[str(dimension)] = size
    found = {}
    for name in decoder["state"]:
        parts = [str(each).split(" + ") for each in declared[name]["shape"]]
        shape = [sum(int(p) if p.isdecimal() else sizes.get(p, 0) for p in each) for each in parts]
        found[name] = np.zeros(shape, declared[name]["dtype"])
    return found


def _next_state(decoder: Mapping[str, Any], outputs: Arrays) -> dict[str, np.ndarray]:
    return {name: outputs[fed_by] for name, fed_by in decoder["state"].items()}


def stacked(rows: Sequence[Any], inputs: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Return one array for each input, of rows of different lengths: padded with zeros at the end, which the masks leave out.

    Args:
        rows: Each a mapping of input to array, without the axis of the batch; or the array alone, where one input is no mask.
        inputs: Each with `name`, `dtype`, `shape`, and `mask`: None, or the side that is padded.
    """
    import numpy as np

    free = [each for each in inputs if not each["mask"]]
    found, lengths = {}, {}
    for each in free:
        arrays = [
            np.asarray(row[each["name"]] if isinstance(row, Mapping) else row) for row in rows
        ]
        whole = np.max([array.shape for array in arrays], axis=0)
        side = next(
            (m["mask"] for m in inputs if m["mask"] and m["shape"][-1] in each["shape"]), "right"
        )
        padded = np.zeros((len(rows), *whole), each["dtype"])
        for row, array in zip(padded, arrays):  # noqa: B905 - Python 3.9 runs this, too
            ends = zip(array.shape, whole)  # noqa: B905 - likewise
            row[tuple(slice(n) if side == "right" else slice(m - n, m) for n, m in ends)] = array
        found[each["name"]] = padded
        for axis, size in enumerate(each["shape"][1:]):
            lengths[size] = np.array([array.shape[axis] for array in arrays])[:, None]
    for each in inputs:
        if each["mask"]:
            own = lengths[each["shape"][-1]]
            place = np.arange(own.max())
            ones = place < own if each["mask"] == "right" else place >= own.max() - own
            found[each["name"]] = ones.astype(each["dtype"])
    return found


def greedy(
    parts: Any,
    sample: Sequence[Any],
    *,
    plan: Mapping[str, Any],
    start: Sequence[int],
    tokens: int,
) -> dict[str, np.ndarray]:
    """Return the most likely `tokens`, shape (rows, tokens), after `start`.

    Args:
        parts: The components.
        sample: Rows that are decoded together, as `stacked` takes them.
        plan: Which component gives what, as `logits` takes it.
    """
    import numpy as np

    steps = logits(parts, sample, plan=plan, start=start, count=tokens)
    return {"tokens": np.stack([each.argmax(-1) for each in steps], axis=1)}


def logits(
    parts: Any,
    sample: Sequence[Any],
    *,
    plan: Mapping[str, Any],
    start: Sequence[int],
    count: int,
    forced: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Yield the logits of each next token: every encoder runs once, and the decoder `count` times.

    Args:
        plan: `inputs`, those of rows; `encoders`, in order, each with its `component` and `takes`, input -> the row's
            input or COMPONENT.OUTPUT; and `decoder`, likewise, with what `decode` takes.
        forced: As `decode` takes it.
    """
    import numpy as np

    known = stacked(sample, plan["inputs"])
    for each in plan["encoders"]:
        feeds = {name: known[source] for name, source in each["takes"].items()}
        for name, array in getattr(parts, each["component"])(**feeds).items():
            known[f"{each['component']}.{name}"] = array
    decoder = plan["decoder"]
    run = getattr(parts, decoder["component"])
    return decode(
        lambda feeds: run(**feeds),
        decoder,
        [np.asarray(start)] * len(sample),
        count,
        given={name: known[source] for name, source in decoder["takes"].items()},
        forced=forced,
    )
