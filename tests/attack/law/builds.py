"""Builds of one step in this process, whose fork servers fork from a template that has the frameworks.

Each build has a fork server of its own, as the command has, so that packages may change between builds.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from onnxbuild.adapters.toolchain.step_environment import ORDINARY, clean_environment
from onnxbuild.building.api import Request, build
from onnxbuild.building.wiring import Workspace
from onnxbuild.cli import why
from onnxbuild.core.errors import EXIT_BUG, BuildError
from onnxbuild.processes.fork_server_process import ForkServerProcess
from tests.attack.in_process import InProcessExecutor, JsonSink
from tests.fork_server_templates import PARENT, PATIENCE_S, TEMPLATE

_SMALL_RECIPE = """\
version: 1
name: small
model: {entrypoint: models/main.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [2, 4]}
outputs: [logits]
quantization: {fp32: none}
"""
_SMALL_MODEL = "import torch\n\n\ndef load():\n    return torch.nn.Linear(4, 2)\n"
STEP = "reference"
"""Runs the user's code, and no exporter."""


@dataclass(frozen=True)
class Built:
    """What a build gave.

    Attributes:
        code: Its exit code.
        outputs: Output -> the artifact's digest; of the last build that was recorded where this one
            was up to date at a glance.
        ran: Whether the step was started.
        log: What the step printed.
        error: What it was refused or failed for.
        reasons: Why it was started.
    """

    code: int
    outputs: Mapping[str, str] = field(default_factory=dict)
    ran: bool = False
    log: str = ""
    error: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Why:
    """What `onnxbuild why` reported.

    Attributes:
        code: Its exit code.
        text: Its output, or its error.
    """

    code: int
    text: str

    @property
    def up_to_date(self) -> bool:
        """Whether it said that the step would not run."""
        return self.code == 0 and self.text.partition("\n")[0].endswith("is up to date")


class Builds:
    """Builds recipes one after another."""

    def __init__(self, folder: Path) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._template = subprocess.Popen(
                [sys.executable, "-s", "-c", TEMPLATE, json.dumps(["", None]), PARENT],
                env=clean_environment(os.environ),
                cwd="/",
                stdin=theirs,
            )
        self._ours = ours
        self._last: dict[Path, Mapping[str, str]] = {}
        self._frameworks = self._learn(folder)

    def close(self) -> None:
        self._ours.close()
        self._template.wait(PATIENCE_S)

    def build(self, recipe: Path, store: Path) -> Built:
        """What `onnxbuild run RECIPE --only STEP --store STORE` would do."""
        try:
            return self._build(recipe, store)
        except BuildError as error:
            return Built(error.exit_code, error=str(error))
        except Exception:  # noqa: BLE001 - the command would end with a traceback
            return Built(EXIT_BUG, error=traceback.format_exc())

    def _build(self, recipe: Path, store: Path) -> Built:
        sink, only = JsonSink(), (STEP,)
        if not store.exists():
            store.mkdir(parents=True)
            shutil.copy(self._frameworks, store)
        result = build(
            Request((recipe,), only, store=str(store)),
            events=[sink],
            make_executor=self._make_executor,
        )
        if result.recalled is not None:
            return Built(0, self._last[store])
        outputs = {
            f"{step}/{name}": artifact.sha256
            for step, each in result.report.results.items()
            for name, artifact in each.outputs.items()
        }
        if result.exit_code == 0:
            self._last[store] = outputs
        started = [event for event in sink.events if event["type"] == "step_started"]
        failures = [
            f"{event['what']} ({event['where']})"
            for event in sink.events
            if event["type"] == "step_failed"
        ]
        logs = sorted((store / "runs" / result.run / "logs").glob("*.log"))
        return Built(
            result.exit_code,
            outputs,
            bool(started),
            "".join(path.read_text(errors="replace") for path in logs),
            "; ".join(failures),
            tuple(reason for event in started for reason in event["reasons"]),
        )

    def _make_executor(self, workspace: Workspace) -> InProcessExecutor:
        temp = workspace.root / "tmp" / f"law-{os.urandom(3).hex()}"
        fork_server = _ForkedForkServer(self, temp, workspace.project)
        return InProcessExecutor(workspace, temp, fork_server, timeout_s=60.0)

    @staticmethod
    def why(recipe: Path, store: Path) -> Why:
        """What `onnxbuild why RECIPE:STEP --store STORE` reports."""
        command = [f"{recipe}:{STEP}", "--store", str(store)]
        done = CliRunner().invoke(why.command, command)
        if isinstance(done.exception, BuildError):
            return Why(done.exception.exit_code, str(done.exception))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            return Why(EXIT_BUG, "".join(traceback.format_exception(done.exception)))
        return Why(done.exit_code, done.output)

    def _learn(self, folder: Path) -> Path:
        """An index that knows the digests of installed software, and nothing else.

        It saves a quarter of a second in each empty store.
        """
        project = folder / "project"
        (project / "models").mkdir(parents=True)
        (project / "pyproject.toml").touch()
        (project / "law.yaml").write_text(_SMALL_RECIPE)
        (project / "models/main.py").write_text(_SMALL_MODEL)
        self._frameworks = folder / "index.db"
        self._frameworks.touch()
        built = self.build(project / "law.yaml", folder / "store")
        assert built.code == 0, built
        return folder / "store/index.db"

    def fork(self, argument: str, connection: socket.socket, log: int) -> socket.socket:
        """A fork server that serves on `connection`; it ends when what is given back is closed."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            message = json.dumps({"argument": argument}).encode()
            passed = [theirs.fileno(), connection.fileno(), log, log]
            socket.send_fds(self._ours, [message], passed)
        return ours


class _ForkedForkServer(ForkServerProcess):
    """The real fork server, but for where it comes from."""

    def __init__(self, builds: Builds, folder: Path, project: Path) -> None:
        super().__init__(folder, project, ORDINARY)
        self._builds = builds
        self._life: socket.socket | None = None

    def connect(self) -> socket.socket:
        if self._connection is None:
            ours, theirs = socket.socketpair()
            with theirs, self._log.open("wb") as log:
                settings = {"socket": 3, "threads": None, "moved": []}
                self._life = self._builds.fork(json.dumps(settings), theirs, log.fileno())
            self._connection = ours
        return self._connection

    def end(self, patience_s: float = 0.0) -> None:
        super().end()
        if self._life is not None:
            select.select([self._life], [], [], patience_s)
            self._life.close()
            self._life = None
