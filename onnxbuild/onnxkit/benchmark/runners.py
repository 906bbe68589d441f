"""Runtimes that a benchmark measures: each loads a model, and binds feeds to a call that runs it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.accuracy.comparison import is_text
from onnxbuild.onnxkit.benchmark.candidate import Bind, LoadCost, LoadsElsewhere, cost_here
from onnxbuild.onnxkit.benchmark.decoding import StatefulFeeds, continued_by_module, stateful_call
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import call_user
from onnxbuild.onnxkit.export.torch_module import load_module, module_tensors
from onnxbuild.onnxkit.frameworks import np, onnxruntime
from onnxbuild.onnxkit.model.tensor_types import ort_feeds
from onnxbuild.onnxkit.programs.artifact_file import read_description
from onnxbuild.onnxkit.programs.programs import PROGRAM_ERRORS, import_runtime, open_program
from onnxbuild.onnxkit.sessions.open import (
    SessionRequest,
    asked_for,
    first_line,
    open_here,
    open_session,
    open_there,
)
from onnxbuild.onnxkit.sessions.rpc_client import HeldThere, HostedSession, SessionHost
from onnxbuild.onnxkit.sessions.run import fit_feeds, run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.timing import rounds
from onnxbuild.onnxkit.timing.concurrency import run_window
from onnxbuild.onnxkit.timing.rounds import timed
from onnxbuild.providers import named

if TYPE_CHECKING:
    import torch


def bound_there(
    session: HostedSession, function: Callable[..., Any], *arguments: object
) -> HostedCall:
    """The call that a function makes in the session's process, given the session and more arguments."""
    return HostedCall(session.keep(function, *arguments))


class HostedCall(rounds.Elsewhere):
    """A call that does its work in a host's process, and is timed there."""

    def __init__(self, held: HeldThere) -> None:
        self._held = held

    def __call__(self) -> None:
        """Do it once, for its effect; there and back takes a tenth of a millisecond more."""
        self._held.host.call(_do, self._held)

    def burst(self, *, discard: bool) -> list[int]:
        """See rounds.Elsewhere."""
        taken: list[int] = self._held.host.call(_burst, self._held, discard)
        return taken

    def runs_in(self, seconds: float) -> int:
        """See rounds.Elsewhere."""
        return int(self._held.host.call(rounds.runs_in, self._held, seconds))

    def window(self, calls: Sequence[Any], seconds: float) -> tuple[list[float], float]:
        """See rounds.Elsewhere."""
        held = [each._held for each in calls]  # noqa: SLF001 - of the same kind
        found: tuple[list[float], float] = self._held.host.call(run_window, held, seconds)
        return found


# --- done under the other interpreter ----------------------------------------------------------------


def _do(call: Callable[[], object]) -> None:
    call()


def _burst(call: Callable[[], object], discard: bool) -> list[int]:  # noqa: FBT001 - over the wire
    return rounds.burst(call, discard=discard)


_COPIES = 20


def bind_io(
    session: onnxruntime.InferenceSession, feeds: Feeds, device_id: int = 0
) -> Callable[[], object]:
    """A call that runs the session on feeds that are on its device already, outputs left there.

    Args:
        session: On any provider; those that have no memory of their own use the host's.
        feeds: Input -> array, copied once.
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


def pytorch(
    context: StepContext,
    model: Entrypoint,
    inputs: Sequence[DummyInput],
    *,
    threads: int,
    compiled: bool = False,
) -> Callable[[], Bind]:
    """The recipe's module, in inference mode.

    Args:
        inputs: Inputs of the module.
        compiled: Whether it goes through torch.compile, which happens at the first run; its
            compiler is imported now.
    """
    if compiled:
        import torch._dynamo  # noqa: F401 - torch.compile imports it, some seconds, when it is called

    def load() -> Bind:
        import torch

        torch.set_num_threads(threads)
        loaded = load_module(context, model)
        module = torch.compile(loaded) if compiled else loaded

        def call_of(tensors: Mapping[str, torch.Tensor]) -> Callable[[], object]:
            def run_once() -> object:
                with torch.inference_mode():
                    return module(**tensors)

            return run_once

        def bind(feeds: Feeds) -> Callable[[], object]:
            if isinstance(feeds, StatefulFeeds) and feeds.decoding.tokens:
                run_once = continued_by_module(module, feeds, feeds.decoding, context.where)
            else:
                run_once = call_of(module_tensors(feeds, inputs, context.where))
            call_user(run_once, model.target, context.where)
            return run_once

        return bind

    return load


def program(folder: Path, *, threads: int, where: str) -> Callable[[], Bind]:
    """A PyTorch program, run without the module; its runtime is imported now.

    Args:
        folder: Holds the program and what describes it.
        where: `recipe:step`, for messages.
    """
    format_ = read_description(folder).format
    import_runtime(format_)

    def load() -> Bind:
        opened = open_program(folder, threads=threads, where=where)

        def bind(feeds: Feeds) -> Callable[[], object]:
            run_once = opened.bind(feeds)
            try:
                run_once()
            except PROGRAM_ERRORS as error:
                shapes = ", ".join(f"{name} {list(each.shape)}" for name, each in feeds.items())
                raise StepError(
                    f"PyTorch fails to run the {format_} program with {shapes}: "
                    f"{first_line(error)}",
                    where=where,
                    fix="take sizes that it was made for in `benchmark.points`, or leave it out "
                    "(of `formats`, or of `--against`)",
                ) from error
            return run_once

        return bind

    return load


def onnx_runtime(
    folder: Path,
    *,
    target: Target,
    library: Path | None,
    settings: SessionSettings,
    where: str,
    io_binding: bool = False,
) -> Callable[[], Bind]:
    """A session on a target.

    Args:
        target: Target whose providers all load.
        library: A plug-in's; None for providers that are built in.
        where: `recipe:step`, for messages.
        io_binding: Whether inputs and outputs stay in the device's memory.
    """
    if target.environment is not None:
        asked = asked_for(folder, target=target, library=library, settings=settings, where=where)
        return _Elsewhere(target.environment.interpreter, asked, io_binding=io_binding)

    def load() -> Bind:
        session = open_session(
            folder, target=target, library=library, settings=settings, where=where
        )
        return _binder(session, where, io_binding=io_binding)

    return load


class _Elsewhere(LoadsElsewhere):
    """A session under another interpreter.

    Args:
        interpreter: Its absolute path.
        io_binding: Whether inputs and outputs stay in the device's memory.
    """

    def __init__(self, interpreter: str, asked: SessionRequest, *, io_binding: bool) -> None:
        self._interpreter = interpreter
        self._asked = asked
        self._io_binding = io_binding

    def __call__(self) -> Bind:
        """See LoadsElsewhere."""
        session = open_there(self._interpreter, self._asked)
        return _binder(session, self._asked.where, io_binding=self._io_binding)

    def cost(self, feeds: Mapping[str, Feeds]) -> LoadCost:
        """See LoadsElsewhere."""
        host = SessionHost(self._interpreter, self._asked.where)
        try:
            found: LoadCost = host.call(_cost_here, self._asked, dict(feeds), self._io_binding)
        finally:
            host.end()
        return found


def _cost_here(asked: SessionRequest, feeds: Mapping[str, Feeds], io_binding: bool) -> LoadCost:  # noqa: FBT001 - over the wire
    return cost_here(lambda: _binder(open_here(asked), asked.where, io_binding=io_binding), feeds)


def _binder(session: onnxruntime.InferenceSession, where: str, *, io_binding: bool) -> Bind:
    bind = _bind_io if io_binding else _bind_arrays

    def bound(feeds: Feeds) -> Callable[[], object]:
        if isinstance(feeds, StatefulFeeds):
            return _bind_state(session, feeds)
        return bind(session, feeds, where)

    return bound


def _bind_state(
    session: onnxruntime.InferenceSession, feeds: StatefulFeeds
) -> Callable[[], object]:
    if isinstance(session, HostedSession):
        call: Callable[[], object] = bound_there(
            session, stateful_call, dict(feeds), feeds.decoding
        )
    else:
        call = stateful_call(session, feeds, feeds.decoding)
    call()
    return call


def _bind_arrays(
    session: onnxruntime.InferenceSession, feeds: Feeds, where: str
) -> Callable[[], object]:
    fitting = fit_feeds(session, feeds)
    run_session(session, fitting, where=where)
    return (
        bound_there(session, _bound_here, fitting)
        if isinstance(session, HostedSession)
        else _bound_here(session, fitting)
    )


def _bound_here(session: onnxruntime.InferenceSession, feeds: Feeds) -> Callable[[], object]:
    fitting = ort_feeds(session, feeds)
    return lambda: session.run(None, fitting)


def _bind_io(
    session: onnxruntime.InferenceSession, feeds: Feeds, where: str
) -> Callable[[], object]:
    fitting = fit_feeds(session, feeds)
    run_session(session, fitting, where=where)
    call = bind_io(session, fitting)
    call()
    return call
