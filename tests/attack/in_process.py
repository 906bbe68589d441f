"""What builds inside the test's process share: a sink that keeps events, the executor with another fork server."""

from pathlib import Path
from typing import Any

from onnxbuild.adapters.kernel import landlock
from onnxbuild.building.wiring import RunOptions, Workspace
from onnxbuild.core.event import Event
from onnxbuild.processes.executor import ProcessExecutor
from onnxbuild.processes.fork_server_process import ForkServerProcess


class JsonSink:
    """Keeps all events, as JSON has them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def emit(self, event: Event) -> None:
        self.events.append(event.to_json())


class InProcessExecutor(ProcessExecutor):
    """The real executor, but for how its fork server begins and ends."""

    def __init__(
        self, workspace: Workspace, temp: Path, fork_server: ForkServerProcess, *, timeout_s: float
    ) -> None:
        super().__init__(
            project=workspace.project,
            store_root=workspace.root,
            temp=temp,
            store=workspace.store,
            fingerprints=workspace.fingerprints,
            places=workspace.fingerprints.places,
            host=workspace.host(RunOptions(memory_bytes=1 << 34)),
            timeout_s=timeout_s,
            landlock_abi=landlock.abi(),
            owners_of=workspace.distributions.owners_of,
        )
        self._fork_server = fork_server
