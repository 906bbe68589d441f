"""The command's work inside the test's process, with a fork server that outlives single runs.

What `onnxbuild run` does is done here by the functions that do it there, and steps run in real
children; only the interpreter and the frameworks are not started anew each time, so that an attack
takes tenths of a second.
"""

import socket
import subprocess
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import store_error
from onnxbuild.adapters.toolchain.step_environment import ORDINARY
from onnxbuild.building.api import Request, build
from onnxbuild.building.wiring import Workspace
from onnxbuild.core.errors import EXIT_STEP, BuildError
from onnxbuild.core.ports import Done
from onnxbuild.processes.fork_server_process import ForkServerProcess
from onnxbuild.processes.process_group import kill_group
from tests.attack.command import Seen
from tests.attack.in_process import InProcessExecutor, JsonSink


class Warm:
    """Runs recipes, one after another, with one fork server."""

    def __init__(self) -> None:
        self.fork_server: subprocess.Popen[bytes] | None = None
        self.connection: socket.socket | None = None

    def run(self, recipe: Path, store: Path | None = None) -> Seen:
        """What `onnxbuild run RECIPE --store STORE` would do and print."""
        sink, place = JsonSink(), None if store is None else str(store)
        try:
            result = build(
                Request((recipe,), store=place),
                events=[sink],
                make_executor=lambda workspace: _WarmExecutor(self, workspace),
            )
        except BuildError as error:
            return Seen(error.exit_code, sink.events, f"error: {error}\n")
        except OSError as error:  # as the command's edge has it
            reported = store_error(error, error.filename or "the output")
            return Seen(EXIT_STEP, sink.events, f"error: {reported}\n")
        return Seen(result.exit_code, sink.events)

    def close(self) -> None:
        if self.connection is not None and self.fork_server is not None:
            self.connection.close()
            self.fork_server.wait(timeout=300)
        self.connection = self.fork_server = None


class _WarmExecutor(InProcessExecutor):
    """The executor, with a fork server that outlives it."""

    def __init__(self, warm: Warm, workspace: Workspace) -> None:
        temp = workspace.root / "tmp" / "warm"
        fork_server = _WarmForkServer(warm, temp, workspace.project)
        super().__init__(workspace, temp, fork_server, timeout_s=600.0)
        self._warm = warm

    def _fork_server_died(self, *what: str) -> list[Done]:
        self._warm.close()
        return super()._fork_server_died(*what)

    def close(self) -> None:
        while (
            self._running
        ):  # what the fork server still sends of these jobs is not for the next run
            for each in self._running.values():
                kill_group(each.pid)
            self._receive()
        super().close()


class _WarmForkServer(ForkServerProcess):
    """The real fork server, but for when it begins and ends."""

    def __init__(self, warm: Warm, folder: Path, project: Path) -> None:
        super().__init__(folder, project, ORDINARY)
        self._warm = warm
        self._connection, self._process = warm.connection, warm.fork_server

    def connect(self) -> socket.socket:
        found = super().connect()
        self._warm.connection, self._warm.fork_server = self._connection, self._process
        return found

    def end(self, patience_s: float = 0.0) -> None:
        del patience_s
        self._connection = self._process = None
        self._buffer = b""
