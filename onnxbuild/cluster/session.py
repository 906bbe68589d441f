"""A driver's run on a worker: a thread with the project and its store, and processes of its own for the steps."""

from __future__ import annotations

import contextlib
import itertools
import queue
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.adapters.clock import run_id
from onnxbuild.adapters.disk import locks
from onnxbuild.adapters.disk.atomic_files import make_folder
from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.adapters.locate import cache_root
from onnxbuild.building.remote import remote_of
from onnxbuild.building.request import Request
from onnxbuild.building.wiring import Run, RunOptions, Workspace, open_workspace, start_run
from onnxbuild.catalog import CATALOG
from onnxbuild.cluster.messages import Answer, failed, read_job
from onnxbuild.cluster.requirements import runs_alone
from onnxbuild.core.action import Action
from onnxbuild.core.decision import changed_action
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, StepError
from onnxbuild.core.event import Event
from onnxbuild.core.ports import Job
from onnxbuild.engine.decide import make_action
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty

_POLL_S = 0.05
_SILENCE_S = 60.0
"""A driver that was not heard of for so long is gone."""


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Folders and room that a worker has.

    Attributes:
        project: Its copy of the project.
        store: Its store's folder.
        jobs: Steps at a time.
        memory_bytes: For all of them.
        name: Of the worker, for messages.
        tags: What drivers may ask for; see requirements.tags_of.
        index: Whether it uses its store's index; see wiring.open_workspace.
    """

    project: Path
    store: Path
    jobs: int
    memory_bytes: int
    name: str
    tags: tuple[str, ...] = ()
    index: bool = True


@dataclass(frozen=True, slots=True)
class _JobRequest:
    text: str
    answer: Future[str]


class _Silence:
    """Nobody looks on; implements EventSink."""

    def emit(self, event: Event) -> None:
        """Forget it."""


class Session:
    """One run of one driver.

    Args:
        place: The worker's.
        timeout_s: Wall time of one step.
        on_end: Called when it has ended, with itself.
    """

    def __init__(
        self, place: WorkerPlace, timeout_s: float, on_end: Callable[[Session], None]
    ) -> None:
        self._place, self._timeout_s, self._on_end = place, timeout_s, on_end
        self._id = run_id()
        self._requests: queue.Queue[_JobRequest] = queue.Queue()
        self._running: dict[str, Future[str]] = {}
        self._waiting: list[tuple[Job, Future[str]]] = []
        self._held: dict[str, locks.FileLock] = {}
        self._machine = Path(cache_root()) / "locks" / f"steps-{socket.gethostname()}"
        self._numbers = itertools.count()
        self._heard_s = time.monotonic()
        self._stopped = threading.Event()
        self.incoming = place.store / "tmp" / self._id / "incoming"
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    # --- called by other threads -----------------------------------------------------------------

    def heard(self) -> None:
        """Note that the driver lives."""
        self._heard_s = time.monotonic()

    def run(self, text: str) -> str:
        """Run a job, as JSON; return the answer, as JSON."""
        self.heard()
        request = _JobRequest(text, Future())
        self._requests.put(request)
        while request.answer.done() or not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                return request.answer.result(timeout=1.0)
        return failed(StepError(f"the worker {self._place.name} was stopped")).text()

    def take(self, digest: Digest, offset: int, piece: bytes) -> None:
        """Take a piece of content that the driver sends; it counts once all of it has the digest.

        Raises:
            OSError: It can't be written.
        """
        self.heard()
        make_folder(self.incoming)
        with (self.incoming / digest.sha256).open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(piece)

    def stop(self) -> None:
        """End all that runs."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    # --- its thread -----------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            with contextlib.ExitStack() as cleanup:
                workspace, run = self._open(cleanup)
                while not self._stopped.is_set() and not self._is_forgotten():
                    self._turn(workspace, run)
        except BuildError as error:
            self._refuse_all(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver has to hear of it
            self._refuse_all(StepError(f"the worker {self._place.name} failed: {error!r}"))
        finally:
            for lock in self._held.values():
                lock.release()
            self._on_end(self)
            self._stopped.set()

    def _open(self, cleanup: contextlib.ExitStack) -> tuple[Workspace, Run]:
        place = self._place
        refuse_faulty(bring_plugins(place.project))
        workspace = open_workspace(place.project, place.store, index=place.index)
        cleanup.callback(workspace.close)
        access = remote_of(Request((place.project / "recipe.yaml",), store=str(place.store)))
        if access is not None:
            workspace, remote = access.attach(workspace)
            cleanup.callback(remote.close)
        options = RunOptions(place.jobs, place.memory_bytes, self._timeout_s)
        run = start_run(workspace, self._id, options, _Silence())
        cleanup.callback(run.close)
        return workspace, run

    def _is_forgotten(self) -> bool:
        return time.monotonic() - self._heard_s > _SILENCE_S

    def _turn(self, workspace: Workspace, run: Run) -> None:
        """Take a new job, and answer for those that ended."""
        with contextlib.suppress(queue.Empty):
            request = self._requests.get(timeout=_POLL_S)
            self._begin(request, workspace, run)
        self._start_waiting(run)
        for done in run.executor.wait(_POLL_S) if self._running else ():
            answer = Answer.of(done)
            if done.error is None and not workspace.fingerprints.still(
                done.job.action, done.observed
            ):
                answer = failed(_changed(done.job.step.name, self._place.name))
            done.job.log.unlink(missing_ok=True)
            self._held.pop(str(done.job.log)).release()
            self._running.pop(str(done.job.log)).set_result(answer.text())

    def _begin(self, request: _JobRequest, workspace: Workspace, run: Run) -> None:
        log = workspace.root / "tmp" / self._id / f"log-{next(self._numbers)}"
        host = run.executor.hosts()[0]
        try:
            job = read_job(request.text, CATALOG, log, host.name)
            missing = self._missing(job, workspace)
            if missing:
                request.answer.set_result(Answer(missing=missing).text())
                return
            kind = CATALOG[job.step.kind]
            action = make_action(job.step, kind, job.inputs, workspace.fingerprints, host)
            if action != job.action:  # 1 and 1.0 are equal, and make different keys
                raise _differs(job, action, self._place.name)
            action = replace(job.action, outside=action.outside, interpreter=action.interpreter)
            job = Job(job.step, job.address, action, job.inputs, job.outputs, log, host.name)
            self._waiting.append((job, request.answer))
        except BuildError as error:
            refused = StepError(
                f"on the worker {self._place.name}: {error.what}", where=error.where, fix=error.fix
            )
            refused.exit_code = error.exit_code
            request.answer.set_result(failed(refused).text())

    def _start_waiting(self, run: Run) -> None:
        """Start the jobs that wait, unless what runs alone runs on this machine, in whichever worker."""
        for job, answer in list(self._waiting):
            lock = locks.try_lock(self._machine, shared=not runs_alone(job.step))
            if lock is not None:
                self._waiting.remove((job, answer))
                self._held[str(job.log)] = lock
                self._running[str(job.log)] = answer
                run.executor.start(job)

    def _missing(self, job: Job, workspace: Workspace) -> tuple[Digest, ...]:
        """Return what of a job's inputs is not here, after taking in what was sent or the remote has."""
        wanted: dict[str, Digest] = {}
        for artifact in job.inputs.values():
            for _, digest in artifact.files:
                self._adopt(digest, workspace)
            if workspace.store.faults(artifact, by_content=True):
                for _, digest in artifact.files:
                    if not workspace.disk.blob(digest).exists():
                        wanted[digest.sha256] = digest
        return tuple(wanted.values())

    def _adopt(self, digest: Digest, workspace: Workspace) -> None:
        sent = self.incoming / digest.sha256
        if sent.exists():
            if hash_file(str(sent)) == digest.sha256:
                workspace.disk.adopt(sent, digest)
            sent.unlink(missing_ok=True)

    def _refuse_all(self, error: BuildError) -> None:
        for answer in (*self._running.values(), *(answer for _, answer in self._waiting)):
            answer.set_result(failed(error).text())
        self._running, self._waiting = {}, []
        with contextlib.suppress(queue.Empty):
            while True:
                self._requests.get_nowait().answer.set_result(failed(error).text())


def _differs(job: Job, action: Action, worker: str) -> StepError:
    """Return the error for a worker whose files, packages or machine are not those that the driver sees."""
    reasons = changed_action(job.action.to_json(), action)
    shown = "; ".join(map(str, reasons[:3]))
    more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""  # noqa: PLR2004
    return StepError(
        f"it is not as here: {shown}{more} (here -> on {worker})",
        where=job.step.name,
        fix="give it the same project and packages, and start it again",
    )


def _changed(step: str, worker: str) -> StepError:
    return StepError(
        f"an input changed on the worker {worker} while the step ran; nothing was recorded",
        where=step,
        fix="run again when its files are no longer written to",
    )
