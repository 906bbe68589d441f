"""Measuring a model with a state: calls on one buffer, and whole texts, each call with the state that the last one left."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.axis import Axis, Point, shape_at
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.greedy import roles_of
from onnxbuild.onnxkit.data.states import growth_in, prompt_length, state_inputs
from onnxbuild.onnxkit.frameworks import np, onnxruntime, torch
from onnxbuild.onnxkit.loaders.decoding import decode
from onnxbuild.onnxkit.model.tensor_types import numpy_dtype, tensor_of
from onnxbuild.onnxkit.modules.module_outputs import named_outputs
from onnxbuild.onnxkit.sessions.decoding import StatefulRun

TOKENS = "tokens"
"""Size of a point that is a whole text: how many tokens follow the prompt."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """A call of a model with a state, besides its feeds.

    Attributes:
        inputs: As the recipe declares them.
        tokens: How many tokens follow the prompt; 0 for one call.
        logits: Name of the output that decides on them.
        room: Elements that a buffer holds along the axis that grows.
    """

    inputs: tuple[DummyInput, ...]
    tokens: int
    logits: str
    room: int


class StatefulFeeds(Feeds):
    """Feeds of a call that is run with its state in place, or of the first call of a text.

    Args:
        feeds: Input -> array.
        decoding: What else the call needs.
    """

    def __init__(self, feeds: Feeds, decoding: Decoding) -> None:
        super().__init__(feeds)
        self.decoding = decoding

    def __reduce__(self) -> tuple[Any, ...]:
        """Sessions of other environments get them over the wire."""
        return StatefulFeeds, (dict(self), self.decoding)


def with_texts(
    points: Sequence[Point],
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    tokens: int,
    where: str,
) -> tuple[Point, ...]:
    """Points, and after each without a past one at which `tokens` more tokens follow.

    Raises:
        StepError: The state has no room for them, or each point has a past.
    """
    growth = growth_in(inputs)
    if not tokens or growth is None:
        return tuple(points)
    most = next(each.max for each in axes if each.name == growth.axis)
    found = []
    for point in points:
        found.append(point)
        if point.sizes[growth.axis]:
            continue
        reached = point.sizes.get(growth.by, 1) + tokens - 1
        if reached > most:
            raise StepError(
                f"`benchmark.tokens` is {tokens}: after {point.name} the state reaches {reached}; "
                f"axis '{growth.axis}' ends at {most}",
                where=where,
                fix=f"write a smaller number, or `{growth.axis}: {{max: {reached}}}` in `dynamic_axes`",
            )
        found.append(Point(f"{point.name},{TOKENS}={tokens}", {**point.sizes, TOKENS: tokens}))
    if len(found) == len(points):
        raise StepError(
            f"`benchmark.tokens` is {tokens}, and no point of `benchmark.points` begins a text",
            where=where,
            fix=f"add one, `{{{f'{growth.by}: 16, ' * bool(growth.by)}{growth.axis}: 0}}`",
        )
    return tuple(found)


def stateful_feeds(
    feeds: Feeds, inputs: tuple[DummyInput, ...], axes: Sequence[Axis], point: Point, logits: str
) -> Feeds:
    """The feeds of a point, with what is needed to run it where it is a text, or the state is in place."""
    growth, tokens = growth_in(inputs), _tokens(point)
    if growth is None or not (tokens or growth.in_place):
        return feeds
    most = next(each.max for each in axes if each.name == growth.axis)
    room = most + prompt_length(feeds, inputs, growth)
    return StatefulFeeds(feeds, Decoding(inputs, tokens, logits, room))


def is_text(point: Point) -> bool:
    """Return whether a point is a whole text."""
    return _tokens(point) > 0


def _tokens(point: Point) -> int:
    return int(point.sizes.get(TOKENS, 0))


def point_facts(point: Point, inputs: Sequence[DummyInput]) -> dict[str, object]:
    """Facts of a point of a model whose state grows, for the report: the kind of call, and the bytes of the new state."""
    growth = growth_in(inputs)
    if growth is None:
        return {}
    sizes, tokens = {growth.by: 1, **point.sizes}, _tokens(point)
    kind = "decode" if sizes[growth.by] == 1 and sizes[growth.axis] else ""
    kind = kind or ("prefill" if not sizes[growth.axis] else "")
    sizes[growth.axis] += sizes[growth.by] + max(tokens - 1, 0)
    taken = sum(
        math.prod(shape_at(each.shape, sizes)) * numpy_dtype(each.dtype).itemsize
        for each in state_inputs(inputs)
    )
    return {"kind": TOKENS if tokens else kind or "call", "state_bytes": taken}


def stateful_call(
    session: onnxruntime.InferenceSession, feeds: Feeds, decoding: Decoding
) -> Callable[[], object]:
    """A call, run once, that runs a session on feeds in place, or continues the prompt in them greedily."""
    run = StatefulRun(session, decoding.inputs, decoding.room)
    if decoding.tokens:
        return _continued(run, feeds, decoding)
    run(feeds)
    state = {each.name for each in state_inputs(decoding.inputs) if each.in_place}
    others = {name: array for name, array in feeds.items() if name not in state}
    return lambda: run(others)


def continued_by_module(
    module: torch.nn.Module, feeds: Feeds, decoding: Decoding, where: str
) -> Callable[[], object]:
    """A call that continues the prompt in feeds with PyTorch, whose cache goes from one call to the next."""
    dtypes = {each.name: each.dtype for each in decoding.inputs}

    def run(given: Feeds) -> Mapping[str, np.ndarray]:
        tensors = {
            name: tensor_of(name, dtypes[name], each, where)
            if isinstance(each, np.ndarray)
            else each
            for name, each in given.items()
        }
        with torch.inference_mode():
            found = named_outputs(module(**tensors), (), where, inputs=given)
        return {**found, decoding.logits: found[decoding.logits].numpy()}

    return _continued(run, feeds, decoding)


def _continued(
    run: Callable[[Feeds], Mapping[str, np.ndarray]], feeds: Feeds, decoding: Decoding
) -> Callable[[], object]:
    roles = roles_of(decoding.inputs)
    decoder, prompts = roles.decoder(decoding.logits), list(feeds[roles.tokens.name])

    def text() -> None:
        for _ in decode(run, decoder, prompts, decoding.tokens):
            pass

    return text
