"""Runs of a session with its inputs and outputs bound to the device's memory."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.accuracy.comparison import is_text
from onnxbuild.onnxkit.benchmark.remote_call import bound_there
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.model.tensor_types import ort_feeds
from onnxbuild.onnxkit.sessions.remote_session import HostedSession
from onnxbuild.onnxkit.timing.rounds import timed
from onnxbuild.providers import named

if TYPE_CHECKING:
    import onnxruntime

_COPIES = 20


def bind_io(
    session: onnxruntime.InferenceSession, feeds: Feeds, device_id: int = 0
) -> Callable[[], object]:
    """A call that runs the session on feeds that are on its device already, outputs left there.

    Args:
        session: On any provider; those that have no memory of their own use the host's.
        feeds: Input -> array, copied once.
        device_id: Of the device.
    """
    if isinstance(session, HostedSession):
        return bound_there(session, bind_io, feeds, device_id)
    binding, _ = _bound(session, feeds, device_id)

    def run_once() -> object:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return binding

    return run_once


def copy_times_ms(
    session: onnxruntime.InferenceSession, feeds: Feeds, device_id: int = 0
) -> tuple[float, float]:
    """Median time to bring all inputs to the device and all outputs back, in ms."""
    if isinstance(session, HostedSession):
        elsewhere: tuple[float, float] = session.call(copy_times_ms, feeds, device_id)
        return elsewhere
    binding, values = _bound(session, feeds, device_id)
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    inward, outward = [], []
    for _ in range(_COPIES):
        _, inward_s = timed(lambda: _update(binding, values, feeds))
        _, outward_s = timed(lambda: [value.numpy() for value in binding.get_outputs()])
        inward.append(inward_s)
        outward.append(outward_s)
    return statistics.median(inward) * 1e3, statistics.median(outward) * 1e3


def _update(binding: onnxruntime.IOBinding, values: dict[str, Any], feeds: Feeds) -> None:
    for name, value in values.items():
        value.update_inplace(feeds[name])
    binding.synchronize_inputs()


def _bound(
    session: onnxruntime.InferenceSession, feeds: Feeds, device_id: int
) -> tuple[onnxruntime.IOBinding, dict[str, Any]]:
    import numpy as np
    import onnxruntime

    device = named(session.get_providers()[0]).memory
    binding = session.io_binding()
    values = {}
    for name, array in ort_feeds(session, feeds).items():
        if isinstance(array, onnxruntime.OrtValue):  # of bfloat16, on the host
            binding.bind_ortvalue_input(name, array)
            continue
        if is_text(array):
            raise StepError(
                f"input '{name}' is of strings, which ONNX Runtime binds to no memory",
                fix="leave `io_binding` out of `benchmark`",
            )
        values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(
            np.ascontiguousarray(array), device, device_id
        )
        binding.bind_ortvalue_input(name, values[name])
    for each in session.get_outputs():
        binding.bind_output(each.name, device, device_id)
    return binding, values
