"""Decoding: the next token, and again, with a state that goes round; and the tokens of frames (CTC). A package has a copy: NumPy is all that it imports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray]
    Run = Callable[[dict[str, np.ndarray]], Arrays]
    """Input -> array, output -> array."""


class DecodingError(ValueError):
    """Error of a model whose outputs are not what a recipe says of them.

    Attributes:
        fix: Text to type.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.fix = fix


def decode(
    run: Run,
    decoder: Mapping[str, Any],
    prompts: Sequence[np.ndarray],
    count: int,
    *,
    given: Mapping[str, np.ndarray] | None = None,
    forced: np.ndarray | None = None,
    at_once: int = 1,
    rules: Mapping[str, Any] | None = None,
) -> Iterator[np.ndarray]:
    """Yield the logits of the next token of each prompt, shape (prompts, vocabulary), `count` times.

    The token that `chosen` takes follows, or that of `forced`. Prompts of different lengths are padded on their left with 0,
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
        rules: Arguments of `chosen`; None for the most likely tokens.
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
        if forced is None:
            ids = chosen(last[:, -1], done - 1, **rules or {})[:, None]
        else:
            new = min(at_once, count - done)
            ids = forced[:, done - 1 : done - 1 + new]
        state = _next_state(decoder, outputs)
        mask = np.concatenate([mask, np.ones_like(ids, bool)], axis=1)


def chosen(
    logits: np.ndarray,
    step: int,
    *,
    suppress_tokens: Sequence[int] = (),
    begin_suppress_tokens: Sequence[int] = (),
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
) -> np.ndarray:
    """Return the next token of each row: the most likely one, or one that is drawn.

    A token is drawn by inverse CDF, over ids in their order, at a number that seed and step decide: equal for all rows, and
    moved by no rounding of the logits, whose order may change where two nearly tie.

    Args:
        logits: Shape (rows, vocabulary).
        step: Number of new tokens before.
        suppress_tokens: Ids that never follow.
        begin_suppress_tokens: Ids that do not follow first.
        temperature: Divides the logits before a token is drawn; 0 takes the most likely one.
        top_p: Share of the probability that the tokens to draw from have, the most likely first.
        seed: Of the drawing.
    """
    import numpy as np

    allowed: np.ndarray = logits.astype(np.float64)
    allowed[:, [*suppress_tokens, *(() if step else begin_suppress_tokens)]] = -np.inf
    if not temperature:
        likeliest: np.ndarray = allowed.argmax(-1)
        return likeliest
    likely = np.exp((allowed - allowed.max(-1, keepdims=True)) / temperature)
    likely /= likely.sum(-1, keepdims=True)
    order = np.argsort(-likely, axis=-1, kind="stable")
    ordered = np.take_along_axis(likely, order, axis=-1)
    ordered[:, 1:][np.cumsum(ordered, axis=-1)[:, :-1] >= top_p] = 0
    np.put_along_axis(likely, order, ordered, axis=-1)
    reached = np.cumsum(likely, axis=-1)
    place = np.random.default_rng([seed, step]).random() * reached[:, -1:]
    drawn: np.ndarray = (reached <= place).sum(-1)
    return drawn


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
        inputs: Each with `name`, `dtype`, `shape`, and `mask`: None, or the side that is padded; and those with `joined`, of
            which a row has any number, and whose rows follow one another.
    """
    import numpy as np

    free = [each for each in inputs if not each["mask"] and not each.get("joined")]
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
        if each.get("joined"):
            found[each["name"]] = np.concatenate([row[each["name"]] for row in rows])
    for each in inputs:
        if each["mask"]:
            own = lengths[each["shape"][-1]]
            place = np.arange(own.max())
            ones = place < own if each["mask"] == "right" else place >= own.max() - own
            found[each["name"]] = ones.astype(each["dtype"])
    return found


def greedy(parts: Any, sample: Sequence[Any], **how: Any) -> dict[str, np.ndarray]:
    """Return `tokens`, shape (rows, tokens): those that `new_tokens`, which takes the same, yields."""
    import numpy as np

    return {"tokens": np.stack([*new_tokens(parts, sample, **how)], axis=1)}


def new_tokens(
    parts: Any,
    sample: Sequence[Any],
    *,
    plan: Mapping[str, Any],
    tokens: int,
    start: Sequence[int] = (),
    **rules: Any,
) -> Iterator[np.ndarray]:
    """Yield the next token of each row, shape (rows,), as often as `tokens` says: what follows `start`, or each row's own ids.

    Args:
        parts: The components.
        sample: Rows that are decoded together, as `stacked` takes them.
        plan: Which component gives what, as `logits` takes it.
        rules: Arguments of `chosen`; none: the most likely tokens.
    """
    steps = logits(parts, sample, plan=plan, start=start, count=tokens, rules=rules)
    for number, each in enumerate(steps):
        yield chosen(each, number, **rules)


def logits(
    parts: Any,
    sample: Sequence[Any],
    *,
    plan: Mapping[str, Any],
    start: Sequence[int],
    count: int,
    forced: np.ndarray | None = None,
    rules: Mapping[str, Any] | None = None,
) -> Iterator[np.ndarray]:
    """Yield the logits of each next token: every encoder runs once, and the decoder `count` times.

    An encoder that gets nothing, such as no image, does not run.

    Args:
        plan: `inputs`, those of rows; `encoders`, in order, each with its `component` and `takes`, input -> the row's
            input or COMPONENT.OUTPUT; and `decoder`, likewise, with what `decode` takes. Where the decoder takes embeddings
            also `embedder`, as `_embedded` takes it: rows have the ids to go on from.
        start: Ids that each row begins with, where rows have none.
        forced, rules: As `decode` takes them.

    Raises:
        DecodingError: Rows have more or fewer image tokens than their images are.
    """
    import numpy as np

    known = stacked(sample, plan["inputs"])
    for each in plan["encoders"]:
        feeds = {name: known[source] for name, source in each["takes"].items()}
        if not all(array.size for array in feeds.values()):
            continue
        for name, array in getattr(parts, each["component"])(**feeds).items():
            known[f"{each['component']}.{name}"] = array
    decoder, embedder = plan["decoder"], plan.get("embedder")
    part = getattr(parts, decoder["component"])
    run: Run = lambda feeds: part(**feeds)  # noqa: E731 - or that of an embedder
    prompts = [np.asarray(start)] * len(sample)
    if embedder:
        prompts = [np.asarray(row[decoder["ids"]]) for row in sample]
        run = _embedded(parts, run, embedder, known, prompts)
    return decode(
        run,
        decoder,
        prompts,
        count,
        given={name: known[source] for name, source in decoder["takes"].items()},
        forced=forced,
        rules=rules,
    )


def _embedded(
    parts: Any,
    run: Run,
    embedder: Mapping[str, Any],
    known: Arrays,
    prompts: Sequence[np.ndarray],
) -> Run:
    """Return what runs a decoder of embeddings on ids: the first call has the features of all images, all later ones have none.

    Args:
        run: The decoder.
        embedder: `component`; `ids`, its input of ids; `features`, that of features, with `name`, `dtype`, `shape` and the
            COMPONENT.OUTPUT that it is `from`; `output`, its embeddings, and `gives`, the decoder's input that they are;
            `image_token`, the id in whose places features are.
        known: Outputs of encoders.
    """
    import numpy as np

    port, token = embedder["features"], embedder["image_token"]
    none = np.zeros((0, *port["shape"][1:]), port["dtype"])
    features = known.get(port["from"], none)
    places, given = sum(int((each == token).sum()) for each in prompts), features[..., 0].size
    if places != given:
        raise DecodingError(
            f"the rows have {places} image tokens, of id {token}, and their images give {given} features",
            f"let a row have {none.shape[1]} times the id {token} for each of its images",
        )
    waiting = [features]

    def call(feeds: dict[str, np.ndarray]) -> Arrays:
        own = {
            embedder["ids"]: feeds[embedder["ids"]],
            port["name"]: waiting.pop() if waiting else none,
        }
        embeds = getattr(parts, embedder["component"])(**own)[embedder["output"]]
        others = {name: each for name, each in feeds.items() if name != embedder["ids"]}
        return run({**others, embedder["gives"]: embeds})

    return call


def ctc(
    parts: Any, sample: Sequence[Any], *, plan: Mapping[str, Any], blank: int, **frame: int
) -> dict[str, np.ndarray]:
    """Return the tokens of each row, shape (rows, most tokens of a row): the most likely of each frame, repeats taken once, without blanks.

    Rows of fewer tokens end in blanks.

    Args:
        blank: Id of what stands between tokens.
        plan, frame: As `frames` takes them.
    """
    import numpy as np

    found = []
    for each in frames(parts, sample, plan=plan, **frame):
        ids = each.argmax(-1)
        found.append(ids[(ids != blank) & (np.diff(ids, prepend=-1) != 0)])
    return {"tokens": joined(found, blank)}


def joined(rows: Sequence[Any], fill: int) -> np.ndarray:
    """Return ids in one array; rows of fewer end in `fill`."""
    import numpy as np

    found = np.full((len(rows), max(map(len, rows))), fill)
    for whole, row in zip(found, rows):  # noqa: B905 - Python 3.9 runs this, too
        whole[: len(row)] = row
    return found


def frames(
    parts: Any,
    sample: Sequence[Any],
    *,
    plan: Mapping[str, Any],
    receptive_field: int,
    stride: int,
) -> Iterator[np.ndarray]:
    """Yield the logits of each row's frames, shape (frames, vocabulary), without those of padding.

    Args:
        plan: `inputs`, those of rows; `component`; and its output `logits`, shape (rows, frames, vocabulary).
        receptive_field: How much of a row one frame is made of.
        stride: How far the next frame is.

    Raises:
        DecodingError: There are more or fewer frames than the two say, so that those of padding are not known.
    """
    feeds = stacked(sample, plan["inputs"])
    found = getattr(parts, plan["component"])(**feeds)[plan["logits"]]
    masks = [feeds[each["name"]] for each in plan["inputs"] if each["mask"]]
    if not masks:
        yield from found
        return
    counts = (masks[0].sum(-1) - receptive_field) // stride + 1
    if counts.max() != found.shape[1]:
        size = masks[0].shape[1]
        raise DecodingError(
            f"{found.shape[1]} frames come of a row of {size}; a receptive_field of {receptive_field} and a stride of {stride} "
            f"give {counts.max()}",
            "write what the model's layers before its frames have: a field of kernel + (kernel of the next - 1) x stride, "
            "and so on; the product of all strides",
        )
    for logits, count in zip(found, counts):  # noqa: B905 - Python 3.9 runs this, too
        yield logits[:count]
