"""A session under another interpreter, as steps see it; and calls of it that are timed there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.model.tensor_types import ort_feeds
from onnxbuild.onnxkit.sessions.rpc_client import HeldThere
from onnxbuild.onnxkit.timing import rounds
from onnxbuild.onnxkit.timing.concurrency import run_window


class HostedSession:
    """What steps use of an onnxruntime.InferenceSession, which is in a host's process.

    Args:
        held: The session there.
    """

    def __init__(self, held: HeldThere) -> None:
        self._held = held
        self._inputs, self._outputs, self._providers = held.host.call(_interface, held)

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """What a function returns there, given the session and more arguments."""
        return self._held.host.call(function, self._held, *arguments)

    def bound(self, function: Callable[..., Any], *arguments: object) -> HostedCall:
        """The call that a function makes there of the session and more arguments."""
        return HostedCall(self._held.host.keep(function, self._held, *arguments))

    def get_inputs(self) -> list[NodeArgument]:
        """Name, type and shape of each."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArgument]:
        """The same of outputs."""
        return list(self._outputs)

    def get_providers(self) -> list[str]:
        """Full names."""
        return list(self._providers)

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """Output arrays."""
        found: list[Any] = self.call(_run, names, dict(feeds))
        return found

    def end_profiling(self) -> str:
        """The path of the profile."""
        return str(self.call(_end_profiling))


class HostedCall(rounds.Elsewhere):
    """A call that does its work in a host's process, and is timed there.

    Args:
        held: The call there.
    """

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


class NodeArgument:
    """An input or an output, as ONNX Runtime's NodeArg describes it."""

    def __init__(self, name: str, type_: str, shape: list[int | str | None]) -> None:
        self.name = name
        self.type = type_
        self.shape = shape


# --- done under the other interpreter ----------------------------------------------------------------


def _interface(session: Any) -> tuple[list[NodeArgument], list[NodeArgument], list[str]]:
    def described(values: Any) -> list[NodeArgument]:
        return [NodeArgument(each.name, each.type, list(each.shape)) for each in values]

    return (
        described(session.get_inputs()),
        described(session.get_outputs()),
        session.get_providers(),
    )


def _run(session: Any, names: list[str] | None, feeds: dict[str, Any]) -> list[Any]:
    found: list[Any] = session.run(names, ort_feeds(session, feeds))
    return found


def _end_profiling(session: Any) -> str:
    return str(session.end_profiling())


def _do(call: Callable[[], object]) -> None:
    call()


def _burst(call: Callable[[], object], discard: bool) -> list[int]:  # noqa: FBT001 - over the wire
    return rounds.burst(call, discard=discard)
