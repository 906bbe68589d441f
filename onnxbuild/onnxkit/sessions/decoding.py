"""Calls of a session with its state: the state stays in ONNX Runtime's memory, and may be one buffer for all calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.states import growth_in, prompt_length, state_inputs
from onnxbuild.onnxkit.frameworks import np, onnxruntime
from onnxbuild.onnxkit.sessions.open import first_line, session_errors
from onnxbuild.onnxkit.sessions.rpc_client import HostedSession
from onnxbuild.onnxkit.sessions.run import fit_feeds, run_session

if TYPE_CHECKING:
    from onnxbuild.onnxkit.data.states import Feeds, Run

_CPU = "cpu"


def decoding_run(
    session: onnxruntime.InferenceSession, inputs: Sequence[DummyInput], room: int, where: str = ""
) -> Run:
    """Return a function for `greedy.decode` that runs a model as it will be run: with its state in place, if it is so declared.

    Args:
        room: Elements that a state has at most.
    """
    if any(each.in_place for each in inputs) and not isinstance(session, HostedSession):
        return StatefulRun(session, inputs, room, where=where)
    return lambda feeds: run_session(session, feeds, where)


class StatefulRun:
    """A function for `greedy.decode`: feeds -> outputs, of which the new state are OrtValues and all others arrays.

    A state that is updated in place is one buffer, bound as input and output; every other is the last call's output.

    Args:
        session: In this process.
        inputs: As the recipe declares them.
        room: Elements that a buffer holds along the axis that grows; the state of a first call is copied into it, and
            the rest is `blank`.
        blank: NaN, where nothing may be read that no call has written.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        inputs: Sequence[DummyInput],
        room: int,
        *,
        blank: float = 0.0,
        where: str = "",
    ) -> None:
        self._session, self._where = session, where
        self._room, self._blank = room, blank
        self._state = {each.name: each for each in state_inputs(inputs)}
        self._in_place = {n for n, each in self._state.items() if each.in_place}
        self._binding = session.io_binding()
        self._outputs = [value.name for value in session.get_outputs()]
        for name in self._outputs:  # in this order they come back
            self._binding.bind_output(name, _CPU)
        buffers = {self._state[name].fed_by for name in self._in_place}
        self._allocated = [name for name in self._outputs if name not in buffers]

    def __call__(self, feeds: Feeds) -> Mapping[str, np.ndarray]:
        """Run one call.

        Raises:
            StepError: ONNX Runtime fails.
        """
        arrays = {n: each for n, each in feeds.items() if isinstance(each, np.ndarray)}
        fitting: dict[str, Any] = fit_feeds(self._session, arrays)
        for name, array in fitting.items():
            if name in self._in_place:
                self._bind_buffer(self._state[name], array)
            elif isinstance(array, np.ndarray):
                self._binding.bind_cpu_input(name, np.ascontiguousarray(array))
            else:  # of bfloat16
                self._binding.bind_ortvalue_input(name, array)
        for name in feeds.keys() - arrays.keys() - self._in_place:
            self._binding.bind_ortvalue_input(name, feeds[name])
        for name in self._allocated:
            self._binding.bind_output(name, _CPU)
        try:
            self._session.run_with_iobinding(self._binding)
        except session_errors() as error:
            raise StepError(
                f"ONNX Runtime fails: {first_line(error)}",
                where=self._where,
                fix="see that the sizes are ones the model takes",
            ) from error
        values = dict(zip(self._outputs, self._binding.get_outputs(), strict=True))
        state = {each.fed_by for each in self._state.values()}
        return {name: value if name in state else value.numpy() for name, value in values.items()}

    def _bind_buffer(self, each: DummyInput, value: np.ndarray) -> None:
        """Bind a buffer as a state and as the new one; its first elements along the axis that grows are those of `value`."""
        assert each.growth is not None
        axis = each.shape.index(each.growth.axis)
        shape = list(value.shape)
        shape[axis] = self._room
        made = np.full(shape, self._blank, value.dtype)
        np.moveaxis(made, axis, 0)[: value.shape[axis]] = np.moveaxis(value, axis, 0)
        buffer = onnxruntime.OrtValue.ortvalue_from_numpy(made)
        self._binding.bind_ortvalue_input(each.name, buffer)
        self._binding.bind_ortvalue_output(each.fed_by, buffer)


_SPARE = 3
"""Elements of a buffer that one call leaves as they are."""


def run_in_place(
    session: onnxruntime.InferenceSession,
    feeds: Feeds,
    inputs: Sequence[DummyInput],
    where: str = "",
) -> dict[str, np.ndarray]:
    """Outputs of one call whose state is in buffers; of these, the elements that the call should have written or kept.

    All other elements of the buffers are NaN: one that is read shows in the outputs.

    Raises:
        StepError: ONNX Runtime fails.
    """
    if isinstance(session, HostedSession):
        elsewhere: dict[str, np.ndarray] = session.call(run_in_place, feeds, inputs, where)
        return elsewhere
    growth = growth_in(inputs)
    assert growth is not None
    state = state_inputs(inputs)
    axes = {each.fed_by: each.shape.index(growth.axis) for each in state if each.in_place}
    first = next(each for each in state if each.in_place)
    past = feeds[first.name].shape[axes[first.fed_by]]
    total = past + prompt_length(feeds, inputs, growth)
    run = StatefulRun(session, inputs, total + _SPARE, blank=math.nan, where=where)
    fed = {each.fed_by for each in state}
    found: dict[str, Any] = dict(run(feeds))
    arrays = {name: value.numpy() if name in fed else value for name, value in found.items()}
    return {
        name: array.take(range(total), axes[name]) if name in axes else array
        for name, array in arrays.items()
    }
