"""The executor: steps as children of a fork server, watched for time and memory."""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.adapters.disk.atomic_files import make_folder, store_error
from onnxbuild.adapters.disk.short_temp import ShortName
from onnxbuild.adapters.portable import is_portable
from onnxbuild.adapters.toolchain.step_environment import ORDINARY, StepEnvironment
from onnxbuild.core.action import Expense, Observed
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.ports import Done, EventSink, Fingerprints, Host, Job, Store
from onnxbuild.processes.child import JOB_FILE, RESULT_FILE
from onnxbuild.processes.fork_server_process import ForkServerProcess
from onnxbuild.processes.job_results import World, read_result, recipe_file
from onnxbuild.processes.plugin_code import code_of_plugins
from onnxbuild.processes.process_group import kill_group
from onnxbuild.processes.running import Running, silence
from onnxbuild.processes.spawned_steps import SpawnedSteps

_WATCH_S = 0.2
_STRAYS_S = 10.0
"""Time that a fork server has, on a busy machine too, to end what steps have started: it takes milliseconds."""


class ProcessExecutor:
    """Runs jobs in children of one fork server, which is started when a job is expected.

    Args:
        temp: A folder for this run's jobs, on the store's filesystem; made when needed.
        store: Where inputs are, and outputs go.
        fingerprints: Gives the digests of what a child says that it used.
        host: This machine, with the memory that a step may take, with all that it starts.
        places: Gives the folders of this machine that records may name; asked when a job starts.
        timeout_s: Wall time that a step may take.
        landlock_abi: The kernel's; 0 fences steps in by what Python sees alone.
        owners_of: Gives the distributions that an installed file is of.
        kernel_watch: Let the kernel observe what steps open, where it can.
        surroundings: Those of the steps.
        progress: Receives how far steps are; None if nobody looks on.
    """

    def __init__(
        self,
        *,
        project: Path,
        store_root: Path,
        temp: Path,
        store: Store,
        fingerprints: Fingerprints,
        host: Host,
        places: Callable[[], Mapping[str, str]],
        timeout_s: float,
        landlock_abi: int,
        owners_of: Callable[[str], Collection[str]],
        kernel_watch: bool = True,
        surroundings: StepEnvironment = ORDINARY,
        progress: EventSink | None = None,
    ) -> None:
        self._progress = progress
        self._project = project
        self._store_root = store_root
        self._temp = temp
        self._short: ShortName | None = None
        self._store = store
        self._fingerprints = fingerprints
        self._places = places
        self._timeout_s = timeout_s
        self._hosts = (host,)
        self._memory_bytes = host.memory_bytes
        self._landlock_abi = landlock_abi
        self._owners_of = owners_of
        self._kernel_watch = kernel_watch
        self._surroundings = surroundings
        starter = SpawnedSteps if is_portable() else ForkServerProcess
        self._fork_server: ForkServerProcess | SpawnedSteps = starter(temp, project, surroundings)
        self._running: dict[int, Running] = {}
        self._lost: list[Done] = []
        self._count = 0

    # --- the port -----------------------------------------------------------------------------------

    def hosts(self) -> tuple[Host, ...]:
        """Return this machine."""
        return self._hosts

    def expect(self) -> None:
        """Let the fork server load the frameworks while it is still found out what there is to run."""
        make_folder(self._temp)
        self._fork_server.connect()

    def start(self, job: Job) -> None:
        """Hand a job to the fork server."""
        self._count += 1
        number = self._count
        folder = self._temp / str(number)
        make_folder(folder)
        make_folder(job.log.parent)
        request = {
            "step": job.step.name,
            "kind": job.step.kind,
            "params": job.step.params_json,
            "inputs": {name: self._input_folder(folder / "in", job, name) for name in job.inputs},
            "project": str(self._project),
            "store": str(self._store_root),
            "temp": str(self._short_temp() / str(number) / "temp"),
            "recipe": recipe_file(job, self._project),
            "places": self._places_of(job),
            "landlock_abi": self._landlock_abi,
            "kernel_watch": self._kernel_watch,
            "memory_bytes": self._memory_bytes,
            "progress": self._progress is not None,
            "umask": self._surroundings.umask,
            "hidden": [self._surroundings.original] if self._surroundings.original else [],
            "interpreter": to_json(job.action.interpreter),
            **code_of_plugins(job),
        }
        try:
            (folder / JOB_FILE).write_text(json.dumps(request), encoding="utf-8")
            job.log.touch()
            (folder / RESULT_FILE).touch()  # the step can say that the disk takes no more files
        except OSError as error:
            raise store_error(error, folder) from error
        self._send({"id": number, "folder": str(folder), "log": str(job.log)})
        self._running[number] = Running(job, folder, time.monotonic())

    def wait(self, timeout_s: float) -> list[Done]:
        """Jobs that ended, after waiting at most `timeout_s` for one."""
        ended, self._lost = self._lost, []
        if ended:
            return ended
        if not self._fork_server.is_connected:
            time.sleep(timeout_s)
            return []
        deadline_s = time.monotonic() + timeout_s
        while not ended:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            if self._fork_server.is_readable(min(left_s, _WATCH_S)):
                ended += self._receive()
            ended += self._watch()
        return ended

    def close(self) -> None:
        """Stop whatever still runs, at once."""
        self._note_starts()
        for running in self._running.values():
            kill_group(running.pid)
        strays = any(running.pid for running in self._running.values())
        self._running = {}
        self._fork_server.end(_STRAYS_S if strays else 0.0)
        shutil.rmtree(self._temp, ignore_errors=True)
        if self._short is not None:
            self._short.remove()
            self._short = None

    def _short_temp(self) -> Path:
        if self._short is None:
            self._short = ShortName(self._temp)
        return self._short.path

    # --- the fork server ----------------------------------------------------------------------------

    def _send(self, message: Mapping[str, object]) -> None:
        try:
            self._fork_server.send(message)
        except ConnectionError:  # it died since it was last heard of
            self._lost += self._fork_server_died()
            self._fork_server.send(message)

    def _receive(self) -> list[Done]:
        try:
            messages = self._fork_server.receive()
        except ConnectionError:
            return self._fork_server_died()
        ended = []
        for message in messages:
            if "id" not in message:
                self._fork_server.is_loaded = True
                for each in self._running.values():  # their time begins now
                    each.since_s = time.monotonic()
                continue
            running = self._running[message["id"]]
            if "pid" in message:
                running.pid = message["pid"]
                running.since_s = time.monotonic()
            else:
                del self._running[message["id"]]
                message["peak_bytes"] = max(message["peak_bytes"], running.peak_bytes)
                ended.append(self._ended(running, message))
        return ended

    def _ended(self, running: Running, message: Mapping[str, Any]) -> Done:
        """Return how a job ended, with its outputs in the store; its folder goes."""
        world = World(
            self._project,
            self._store_root,
            self._store,
            self._places_of(running.job),
            self._fingerprints,
            self._owners_of,
        )
        try:
            return read_result(
                running.job, running.folder, message, killed_for=running.killed_for, world=world
            )
        finally:
            shutil.rmtree(running.folder, ignore_errors=True)

    def _fork_server_died(self, what: str = "the process that starts steps died") -> list[Done]:
        self._fork_server.end()
        last = self._fork_server.last_line()
        ended = []
        for running in self._running.values():
            kill_group(running.pid)
            shutil.rmtree(running.folder, ignore_errors=True)
            error = StepError(
                ": ".join((what, *last)),
                where=running.job.step.name,
                fix="run again; if it stays so, see `onnxbuild doctor`",
            )
            # Without the last lines of its log: a step that loses the process that answers its system
            # calls ends with ENOSYS wherever it is, which is nobody's fault there.
            ended.append(Done(running.job, None, {}, Observed(), Expense(), error))
        self._running = {}
        return ended

    def _note_starts(self) -> None:
        """Learn which steps were started since messages were last read, as while an output was stored."""
        with contextlib.suppress(ConnectionError):
            while self._fork_server.is_connected and self._fork_server.is_readable(0.0):
                for message in self._fork_server.receive():
                    if "pid" in message:
                        self._running[message["id"]].pid = message["pid"]
                    elif "id" in message:
                        del self._running[message["id"]]

    def _watch(self) -> list[Done]:
        """Kill what takes too long or too much; give up on a fork server that gives no answer."""
        now_s = time.monotonic()
        for running in self._running.values():
            is_loaded, pid = self._fork_server.is_loaded, self._fork_server.pid
            if running.is_overdue(self._timeout_s, now_s, is_loaded=is_loaded, fork_server=pid):
                return self._fork_server_died(silence(pid, is_loaded=is_loaded))
            running.hold_to(self._timeout_s, self._memory_bytes, now_s)
            if self._progress is not None and (said := running.progress(now_s)) is not None:
                self._progress.emit(said)
        return []

    def _places_of(self, job: Job) -> dict[str, str]:
        return {**self._places(), **job.action.outside}

    def _input_folder(self, inputs: Path, job: Job, name: str) -> str:
        """A folder below `inputs` that shows an artifact's files under their names."""
        folder = inputs / name.replace("/", "__")
        make_folder(folder)
        for path, blob in self._store.paths(job.inputs[name]).items():
            target = folder / path
            make_folder(target.parent)
            try:
                target.symlink_to(blob)
            except OSError as error:
                raise store_error(error, target) from error
        return str(folder)
