"""A session under another interpreter, as steps see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.model.tensor_types import ort_feeds
from onnxbuild.onnxkit.sessions.rpc_client import HeldThere


class HostedSession:
    """Client of an onnxruntime.InferenceSession in a host's process, as far as steps use it.

    Args:
        held: The session there.
    """

    def __init__(self, held: HeldThere) -> None:
        self._held = held
        self._inputs, self._outputs, self._providers = held.host.call(_interface, held)

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return what a function returns there, given the session and more arguments."""
        return self._held.host.call(function, self._held, *arguments)

    def keep(self, function: Callable[..., Any], *arguments: object) -> HeldThere:
        """Call as `call` does, and keep the result in the host's process."""
        return self._held.host.keep(function, self._held, *arguments)

    def get_inputs(self) -> list[NodeArgument]:
        """Name, type and shape of each input."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArgument]:
        """Name, type and shape of each output."""
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
