"""ONNX Runtime under another interpreter: a process that keeps sessions and answers calls."""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.tensor_types import ort_feeds
from onnxbuild.onnxkit.sessions import rpc_server
from onnxbuild.onnxkit.sessions.rpc_server import Held, receive, send
from onnxbuild.own_folder import REAL_OWN_FOLDER

_START = """\
import importlib.util, sys
spec = importlib.util.spec_from_file_location(
    "onnxbuild", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]]
)
sys.modules["onnxbuild"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["onnxbuild"])
from onnxbuild.onnxkit.sessions.rpc_server import serve
serve(int(sys.argv[2]))
"""  # this very onnxbuild, and nothing else of the folder that it is in

RUNTIME = "onnxruntime"
"""The module of ONNX Runtime."""

_PATIENCE_S = 10.0

_hosts: dict[tuple[int, str, str], SessionHost] = {}


class HostedError(RuntimeError):
    """Error that ONNX Runtime raised under the other interpreter."""


class SessionHost:
    """One process of another interpreter, which has imported its ONNX Runtime, or a framework.

    Args:
        interpreter: Its absolute path.
        where: `recipe:step`, for messages.
        library: The module that it imports at once.
        variables: Environment variables that it gets besides this process's.

    Raises:
        StepError: It does not start, or can't import the library.
    """

    def __init__(
        self,
        interpreter: str,
        where: str,
        library: str = RUNTIME,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        import socket
        import subprocess
        from multiprocessing.connection import Connection

        self._interpreter = interpreter
        self._where = where
        self._shown = shown = "ONNX Runtime" if library == RUNTIME else library
        self._dropped: list[int] = []
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [interpreter, "-I", "-B", "-c", _START, REAL_OWN_FOLDER, str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    env=None if variables is None else {**os.environ, **variables},
                )
            except OSError as error:
                ours.close()
                raise StepError(
                    f"the interpreter {interpreter} can't be executed: {error.strerror}",
                    where=where,
                    fix="run again: the environment is looked at anew",
                ) from error
        self._connection = Connection(ours.detach())
        try:
            self.call(_import, library)
        except HostedError as error:
            self.end()
            raise StepError(
                f"{interpreter} can't import its {shown}: {error}",
                where=where,
                fix=f"`{interpreter} -m pip check` lists what does not fit; install versions that do",
            ) from error

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return what a function of this program returns there.

        Args:
            function: At the top of one of its modules.
            arguments: Plain values, this program's dataclasses, arrays, or what is held there.

        Raises:
            StepError: The function raised it, or the process died.
            HostedError: The function raised something else.
        """
        kind, value = self._answer(function, arguments, keep=False)
        return self._taken(kind, value)

    def keep(self, function: Callable[..., Any], *arguments: object) -> HeldThere:
        """Call as `call` does, and keep the result in the host's process."""
        kind, value = self._answer(function, arguments, keep=True)
        return HeldThere(self, self._taken(kind, value).number)

    def drop(self, number: int) -> None:
        """Release what is held there; sent with the next call."""
        self._dropped.append(number)

    def _answer(
        self, function: Callable[..., Any], arguments: Sequence[object], *, keep: bool
    ) -> tuple[str, Any]:
        dropped, self._dropped = self._dropped, []
        try:
            send(self._connection, (function, tuple(arguments), keep, dropped))
            answer: tuple[str, Any] = receive(self._connection)
        except (EOFError, OSError) as error:
            self.end()
            code = self._process.returncode
            how = (
                f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
            )
            raise StepError(
                f"the process of {self._interpreter}, which runs {self._shown}, {how}",
                where=self._where,
                fix="see its last lines in the step's log; SIGKILL often means that memory ran out",
            ) from error
        return answer

    def _taken(self, kind: str, value: Any) -> Any:
        if kind == rpc_server.REFUSED:
            raise value
        if kind == rpc_server.FAILED:
            name, text = value
            raise HostedError(text or name)
        return value

    def end(self) -> None:
        """Close; the process ends by itself, or is made to."""
        import subprocess

        self._connection.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class HeldThere(Held):
    """Handle of an object in a host's process, which is released with the handle."""

    def __init__(self, host: SessionHost, number: int) -> None:
        super().__init__(number)
        self.host = host

    def __del__(self) -> None:
        self.host.drop(self.number)


def host_of(
    interpreter: str,
    where: str,
    library: str = RUNTIME,
    variables: Mapping[str, str] | None = None,
) -> SessionHost:
    """Return this process's host of an interpreter; start it on the first call.

    Arguments are those of SessionHost.

    Raises:
        StepError: It does not start, or can't import the library.
    """
    key = (os.getpid(), interpreter, library)
    if key not in _hosts:
        _hosts[key] = SessionHost(interpreter, where, library, variables)
    return _hosts[key]


def hosted_bytes(measure: Callable[[], int]) -> int:
    """Memory of this process's hosts.

    Args:
        measure: Gives that of the process that it is called in, such as memory.resident_bytes.

    Raises:
        StepError: One of them has died.
    """
    own = [host for (owner, *_), host in _hosts.items() if owner == os.getpid()]
    return sum(int(host.call(measure)) for host in own)


@atexit.register
def _end_hosts() -> None:
    for (owner, *_), host in _hosts.items():
        if owner == os.getpid():
            host.end()
    _hosts.clear()


def _import(library: str) -> None:
    import importlib

    importlib.import_module(library)  # what it costs is paid now


def runtime_facts() -> dict[str, str]:
    """The interpreter's Python and ONNX Runtime, for reports."""
    import platform
    from importlib import metadata

    import onnxruntime

    owners = metadata.packages_distributions().get("onnxruntime", ["onnxruntime"])
    return {
        "python": platform.python_version(),
        "onnxruntime": str(onnxruntime.__version__),
        "package": f"{owners[0]} {metadata.version(owners[0])}",
    }


class HostedSession:
    """Client of an onnxruntime.InferenceSession in a host's process, as far as steps use it."""

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
