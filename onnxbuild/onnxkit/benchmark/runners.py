"""Runtimes that a benchmark measures: each loads a model, and binds feeds to a call that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.benchmark.candidate import Bind, LoadCost, LoadsElsewhere, cost_here
from onnxbuild.onnxkit.benchmark.io_binding import bind_io
from onnxbuild.onnxkit.benchmark.remote_call import bound_there
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import call_user
from onnxbuild.onnxkit.export.torch_module import load_module, module_tensors
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
from onnxbuild.onnxkit.sessions.remote_session import HostedSession
from onnxbuild.onnxkit.sessions.rpc_client import SessionHost
from onnxbuild.onnxkit.sessions.run import fit_feeds, run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import onnxruntime


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
        context: The step's.
        model: Gives the module.
        inputs: Inputs of the module.
        threads: Within an operator.
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

        def bind(feeds: Feeds) -> Callable[[], object]:
            tensors = module_tensors(feeds, inputs, context.where)

            def run_once() -> object:
                with torch.inference_mode():
                    return module(**tensors)

            call_user(run_once, model.target, context.where)
            return run_once

        return bind

    return load


def program(folder: Path, *, threads: int, where: str) -> Callable[[], Bind]:
    """A PyTorch program, run without the module; its runtime is imported now.

    Args:
        folder: Holds the program and what describes it.
        threads: Within an operator.
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
        folder: Holds the model.
        target: Target whose providers all load.
        library: A plug-in's; None for providers that are built in.
        settings: The session's.
        where: `recipe:step`, for messages.
        io_binding: Whether inputs and outputs stay in the device's memory.
    """
    if target.environment is not None:
        asked = asked_for(folder, target=target, library=library, settings=settings, where=where)
        return _Elsewhere(target.environment.interpreter, asked, io_binding=io_binding)

    def load() -> Bind:
        session = open_session(
            folder,
            target=target,
            library=library,
            settings=settings,
            where=where,
        )
        return _binder(session, where, io_binding=io_binding)

    return load


class _Elsewhere(LoadsElsewhere):
    """A session under another interpreter.

    Args:
        interpreter: Its absolute path.
        asked: The session.
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
    return lambda feeds: bind(session, feeds, where)


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
