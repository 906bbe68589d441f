"""Calls of a session under another interpreter, timed there: going there and back is no inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnxbuild.onnxkit.sessions.remote_session import HostedSession
from onnxbuild.onnxkit.sessions.rpc_client import HeldThere
from onnxbuild.onnxkit.timing import rounds
from onnxbuild.onnxkit.timing.concurrency import run_window


def bound_there(
    session: HostedSession, function: Callable[..., Any], *arguments: object
) -> HostedCall:
    """The call that a function makes in the session's process, given the session and more arguments."""
    return HostedCall(session.keep(function, *arguments))


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


# --- done under the other interpreter ----------------------------------------------------------------


def _do(call: Callable[[], object]) -> None:
    call()


def _burst(call: Callable[[], object], discard: bool) -> list[int]:  # noqa: FBT001 - over the wire
    return rounds.burst(call, discard=discard)
