"""The state of a model in feeds: how it grows, an empty one, and the one that the last call gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.axis import Axis, Point, example_sizes, symbols_of
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.loaders import decoding
from onnxbuild.onnxkit.model.tensor_types import numpy_dtype

if TYPE_CHECKING:
    import numpy as np

    Feeds = dict[str, np.ndarray]
    Run = Callable[[Feeds], Mapping[str, np.ndarray]]


def state_inputs(inputs: Sequence[DummyInput]) -> tuple[DummyInput, ...]:
    """The inputs that an output feeds."""
    return tuple(each for each in inputs if each.fed_by)


def growth_in(inputs: Sequence[DummyInput]) -> Growth | None:
    """Return how the state among inputs grows; None where there is none, or it doesn't."""
    return next((each.growth for each in inputs if each.growth is not None), None)


def decoding_points(inputs: Sequence[DummyInput], axes: Sequence[Axis]) -> Iterator[Point]:
    """Yield where a state that grows is tried besides: one new element after one, and after as many as are there at most.

    Axes that don't take these sizes are at their nearest.
    """
    growth = growth_in(inputs)
    if growth is None:
        return
    known = {each.name: each for each in axes}
    old, new = known[growth.axis], known.get(growth.by)
    for name, size in (("decode-first", 1), ("decode-last", old.max)):
        sizes = {old.name: old.nearest(size)} | ({new.name: new.nearest(1)} if new else {})
        yield Point(name, example_sizes(axes) | sizes)


def empty_state(feeds: Mapping[str, np.ndarray], inputs: Sequence[DummyInput]) -> Feeds:
    """The state before a first call: no elements along the axis that grows, else zeros.

    Args:
        feeds: Arrays of the other inputs, of the ranks that are declared.
        inputs: All of them.
    """
    declared = [
        {"name": each.name, "dtype": numpy_dtype(each.dtype), "shape": each.shape}
        for each in inputs
    ]
    state = [each.name for each in state_inputs(inputs)]
    own = {each.name: feeds[each.name] for each in inputs if each.name in feeds}
    return decoding.empty_state({"inputs": declared, "state": state}, own)


def next_state(outputs: Mapping[str, np.ndarray], inputs: Sequence[DummyInput]) -> Feeds:
    """The state of the next call: input -> what the last call gave for it."""
    return {each.name: outputs[each.fed_by] for each in state_inputs(inputs)}


def pieces(
    feeds: Feeds, inputs: Sequence[DummyInput], cuts: Sequence[int], run: Run
) -> Iterator[Feeds]:
    """Feed a whole prompt in pieces, each with the state that the pieces before it left.

    Args:
        feeds: All of the prompt, with an empty state.
        inputs: As the recipe declares them; the state grows.
        cuts: Where the prompt is cut, ascending.
        run: The model, which is not run on the last piece.
    """
    growth = growth_in(inputs)
    assert growth is not None
    state = {each.name: feeds[each.name] for each in state_inputs(inputs)}
    length = prompt_length(feeds, inputs, growth)
    begin = 0
    for end in (*cuts, length):
        part = {
            each.name: _cut(feeds[each.name], each, growth, begin, end)
            for each in inputs
            if not each.fed_by
        }
        yield part | state
        if end < length:
            state = next_state(run(part | state), inputs)
        begin = end


def prompt_length(
    feeds: Mapping[str, np.ndarray], inputs: Sequence[DummyInput], growth: Growth
) -> int:
    """Count the new elements of a call: 0 where no input has their axis."""
    if not growth.by:
        return 1
    for each in inputs:
        if growth.by in each.shape:
            return int(feeds[each.name].shape[each.shape.index(growth.by)])
    return 0


def _cut(array: np.ndarray, each: DummyInput, growth: Growth, begin: int, end: int) -> np.ndarray:
    """The part of an input that belongs to a piece: of what covers the past, too, all up to its end."""
    for axis, dimension in enumerate(each.shape):
        if growth.by in symbols_of(dimension):
            first = begin if dimension == growth.by else 0
            array = array.take(range(first, end), axis)
    return array
