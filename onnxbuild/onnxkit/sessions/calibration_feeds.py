"""The samples that a model is calibrated on; a state in them is what the model itself left, never noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from onnxbuild.core.axis import example_sizes
from onnxbuild.core.entrypoint import PIPELINE_DATA
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.calibration_data import FeedSource
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.data.states import (
    growth_in,
    next_state,
    pieces,
    prompt_length,
    state_inputs,
)
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

if TYPE_CHECKING:
    from onnxbuild.core.state import Growth

_LEAST_CUT = 3
"""Elements that a prompt must have to be fed in pieces: some, one, and some."""


def calibration_feeds(context: StepContext, source: FeedSource, count: int) -> Iterator[Feeds]:
    """The first `count` samples of a source, checked one by one.

    Of a model whose state grows, a sample without a state is a prompt, and becomes three: its first half, one more
    element after that, and the rest; the model `context.input("model")` computes the state between them.

    Raises:
        StepError: The data can't be had, or a sample is not what the recipe declares.
    """
    growth = growth_in(source.inputs)
    if growth is None or not growth.by or source.data.target == PIPELINE_DATA:
        return source.feeds(context, count)
    made = (
        _random(context, source, growth)
        if source.is_random
        else _cut(context, source, growth, count)
    )
    return counted(islice(made, count), "samples", count)


def _cut(context: StepContext, source: FeedSource, growth: Growth, count: int) -> Iterator[Feeds]:
    inputs = source.inputs
    session = open_session(context.input("model"), where=context.where)
    for feeds in source.feeds(context, count):
        length = prompt_length(feeds, inputs, growth)
        is_first = all(feeds[each.name].size == 0 for each in state_inputs(inputs))
        if not is_first or length < _LEAST_CUT:
            yield feeds
            continue
        half = length // 2
        yield from pieces(
            feeds, inputs, (half, half + 1), lambda each: run_session(session, each, context.where)
        )


def _random(context: StepContext, source: FeedSource, growth: Growth) -> Iterator[Feeds]:
    """Random prompts with an empty state, and after each, random ones with the state that it left; none is padded."""
    axes = {each.name: each for each in source.axes}
    old, new = axes[growth.axis], axes[growth.by]
    length = new.nearest(old.example)
    first = example_sizes(source.axes) | {old.name: 0, new.name: length}
    then = example_sizes(source.axes) | {old.name: length}
    inputs = [replace(each, mask=None, fill=1) if each.mask else each for each in source.inputs]
    session = open_session(context.input("model"), where=context.where)
    number = 0
    while True:
        seed = f"{source.seed}:calibration:{number}"
        prompt = make_feeds(inputs, first, f"{seed}:prompt")
        yield prompt
        state = next_state(run_session(session, prompt, context.where), source.inputs)
        yield make_feeds(inputs, then, seed) | state
        number += 1
