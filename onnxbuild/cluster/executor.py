"""The executor whose steps run on the workers of a Dask cluster."""

import contextlib
import hashlib
import itertools
import json
import queue
import threading
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.adapters.disk.atomic_files import make_folder
from onnxbuild.building.wiring import Workspace
from onnxbuild.cluster import worker as remote
from onnxbuild.cluster.description import DescribedHost, Likeness
from onnxbuild.cluster.messages import Answer, failed, job_text
from onnxbuild.cluster.outcomes import ended
from onnxbuild.cluster.requirements import (
    GPU_RESOURCE,
    SLOTS,
    is_host_bound,
    needs_gpu,
    runs_alone,
)
from onnxbuild.cluster.run_folder import RunFolder
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, StepError, UsageError
from onnxbuild.core.graph import Step
from onnxbuild.core.ports import Done, Host, Job, Missing
from onnxbuild.core.sizes import counted

_PIECE_BYTES = 4 << 20
_LOOK_S = 0.5  # between looks at which workers there are
_KEEP_S = 10.0  # between signs of life to the workers
_GRACE_S = 20.0
"""A worker that is gone may come back, or another in its place, for so long."""
_ATTEMPTS = 4
_ROUNDS = 3  # of sending what a worker says that it lacks


class _WorkerLostError(Exception):
    """A worker gave no answer, or a wrong one: its step runs again elsewhere."""


@dataclass(frozen=True, slots=True)
class RemoteHost(DescribedHost):
    """A worker; see core.ports.Host.

    Attributes:
        address: In the cluster.
        resources: What Dask knows of it.
        scheduler: Whose it is, for what to type.
        on: Tag of the workers that steps bound to a host run on; empty for any.
    """

    address: str
    resources: Mapping[str, float]
    scheduler: str
    on: str = ""

    def missing(self, step: Step) -> Missing | None:
        """Return the resource that a step needs and this worker has not."""
        if needs_gpu(step) and not self.resources.get(GPU_RESOURCE):
            return Missing(
                f"the resource {GPU_RESOURCE}, and no worker has it",
                fix=f"on a machine with a GPU: onnxbuild worker {self.scheduler} --tag gpu",
            )
        tags: list[str] = self.said["tags"]
        if self.on and self.on not in tags and is_host_bound(step) and not needs_gpu(step):
            return Missing(
                f"a worker with the tag '{self.on}' (`on` of the executor); {self.name} has {', '.join(tags) or 'none'}",
                fix=f"onnxbuild worker {self.scheduler} --tag {self.on}, or another `on`",
            )
        return None


@dataclass(frozen=True, slots=True)
class _Ended:
    job: Job
    answer: Answer
    worker: str
    fetched: tuple[tuple[Path, Digest], ...] = ()


class DaskExecutor:
    """Runs jobs on the workers of a cluster; implements Executor.

    The engine chooses a worker for each job, as it does among any hosts; Dask carries messages and content, and
    knows who is there. Each job has a thread that follows it. The store and the fingerprints are used by the engine's
    thread alone.

    Args:
        client: Connected to the scheduler.
        workspace: The driver's.
        timeout_s: Wall time of one step.
        say: Takes a line for people.
        on: Tag of the workers that steps bound to a host run on; empty for any.
        end: Called when it is closed: ends a cluster of the run's own.
    """

    def __init__(
        self,
        client: Any,
        workspace: Workspace,
        *,
        timeout_s: float,
        say: Callable[[str], None],
        on: str = "",
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self._workspace, self._end = client, workspace, end
        self._timeout_s, self._say, self._on = timeout_s, say, on
        self._scheduler: str = client.scheduler.address
        self._folder = RunFolder(workspace.root)
        self._id = self._folder.id
        self._here = Likeness()
        self._alive: dict[str, RemoteHost] = {}
        self._lost: dict[str, tuple[RemoteHost, float]] = {}
        self._refused: dict[str, str] = {}
        self._seen = 0
        self._remarks: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._pushing: dict[str, threading.Lock] = {}
        self._closed = threading.Event()
        self._look_lock = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    # --- the port -----------------------------------------------------------------------------------

    def await_workers(self, count: int, timeout_s: float) -> None:
        """Wait until there are workers.

        Raises:
            UsageError: There are none after the time, or all are refused.
        """
        deadline_s = time.monotonic() + timeout_s
        while len(self._alive) < count and time.monotonic() < deadline_s:
            if self._refused and len(self._refused) == self._seen:
                break
            time.sleep(0.05)
        if self._alive:
            self._remarks.put(f"{counted(len(self._alive), 'worker')} at {self._scheduler}")
            return
        why = "; ".join(self._refused.values()) or f"{self._scheduler} has no workers"
        raise UsageError(why, fix=f"onnxbuild worker {self._scheduler}")

    def hosts(self) -> Sequence[Host]:
        """Return the workers, and those that were there a moment ago: what they ran goes elsewhere.

        Where there is none at all, wait for one a while.
        """
        self._pass_on()
        deadline_s = time.monotonic() + _GRACE_S
        while not (found := self._known()) and time.monotonic() < deadline_s:
            time.sleep(_LOOK_S)
        return found

    def _known(self) -> list[RemoteHost]:
        found = {each.name: each for each in [*self._alive.values()]}
        for host, since_s in [*self._lost.values()]:
            if time.monotonic() - since_s < _GRACE_S:
                found.setdefault(host.name, host)
        return [found[name] for name in sorted(found)]

    def expect(self) -> None:
        """Do nothing: workers get ready at their first job."""

    def start(self, job: Job) -> None:
        """Send a job to the worker that it is for."""
        blobs = {
            digest.sha256: path
            for artifact in job.inputs.values()
            for (_, digest), path in zip(
                artifact.files, self._workspace.store.paths(artifact).values(), strict=True
            )
        }
        threading.Thread(target=self._follow, args=(job, blobs), daemon=True).start()

    def wait(self, timeout_s: float) -> list[Done]:
        """Return the jobs that ended, after waiting at most `timeout_s` for one."""
        self._pass_on()
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._ended.get(timeout=timeout_s))
            while True:
                found.append(self._ended.get_nowait())
        return [self._done(each) for each in found]

    def close(self) -> None:
        """Stop whatever still runs, at once."""
        self._closed.set()
        self._pass_on()
        last = threading.Thread(target=self._tell, args=(remote.stop,), daemon=True)
        last.start()
        last.join(5.0)  # a scheduler that is gone gives no answer
        with contextlib.suppress(Exception):  # Dask's own ways to say that it was closed already
            self._client.close(timeout=2)
        self._end()
        self._folder.close()

    # --- the engine's thread ------------------------------------------------------------------------

    def _pass_on(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._say(self._remarks.get_nowait())

    def _done(self, each: _Ended) -> Done:
        """Return how a job ended, with its outputs in the store."""
        for path, digest in each.fetched:
            self._workspace.disk.adopt(path, digest)
        return ended(each.job, each.answer, self._workspace, each.worker)

    # --- who is there -------------------------------------------------------------------------------

    def _watch(self) -> None:
        kept_s = time.monotonic()
        while not self._closed.is_set():
            with contextlib.suppress(Exception):  # whatever Dask raises: the next look may succeed
                self._look()
            if time.monotonic() - kept_s > _KEEP_S:
                kept_s = time.monotonic()
                self._tell(remote.keep)
            self._closed.wait(_LOOK_S)

    def _tell(self, what: Callable[[str], None]) -> None:
        with contextlib.suppress(Exception):  # whoever does not hear it is gone
            self._client.run(what, self._id, workers=list(self._alive), on_error="ignore")

    def _look(self) -> None:
        """Note which workers are there, and take in those that are new."""
        with self._look_lock:
            is_lost = self._client.status != "running"
            known = {} if is_lost else self._workers()
            for address in [each for each in self._alive if each not in known]:
                host = self._alive.pop(address)
                self._lost[address] = host, time.monotonic()
                self._remarks.put(f"the worker {host.name} is gone")
            self._seen = len(known)
            new = [each for each in known if each not in self._alive | self._refused]
            if new:
                said = self._client.run(remote.describe, workers=new, on_error="return")
                for address in new:
                    self._take_in(address, known[address], said.get(address))

    def _workers(self) -> Mapping[str, Any]:
        """Address -> what the scheduler knows; `Client.scheduler_info` may return a cached form without any."""
        identity = self._client.scheduler.identity
        workers: Mapping[str, Any] = self._client.sync(identity, n_workers=-1)["workers"]
        return workers

    def _take_in(self, address: str, known: Mapping[str, Any], said: object) -> None:
        name = str(known["name"])
        if isinstance(said, OSError):
            return  # it is gone, or the next look reaches it
        if not isinstance(said, str):
            why = f"the worker {name} is refused: {said}"
        else:
            found = json.loads(said)
            differs = self._here.differences(found)
            why = f"the worker {name} is refused: it has {differs}" if differs else ""
            if not why:
                resources = dict(known["resources"])
                host = RemoteHost(name, found, address, resources, self._scheduler, self._on)
                self._lost.pop(address, None)
                self._alive[address] = host
                return
        self._refused[address] = why
        self._remarks.put(why)

    # --- a job's thread -----------------------------------------------------------------------------

    def _follow(self, job: Job, blobs: Mapping[str, Path]) -> None:
        try:
            found = self._run(job, blobs)
        except BuildError as error:
            found = _Ended(job, failed(error), "")
        except Exception as error:  # noqa: BLE001 - of Dask's, which the engine has to hear of
            what = StepError(f"the cluster failed: {error!r}", where=job.step.name)
            found = _Ended(job, failed(what), "")
        self._ended.put(found)

    def _run(self, job: Job, blobs: Mapping[str, Path]) -> _Ended:
        """Run a job, elsewhere again if a worker is lost.

        Raises:
            StepError: Too many were, or there is none that could run it.
        """
        lost: list[str] = []
        why = ""
        for attempt in range(_ATTEMPTS):
            host = self._host_for(job, lost)
            try:
                answer = self._ask(job, blobs, host, attempt)
                fetched = () if answer.error else tuple(self._fetch(answer.blobs(), host))
            except _WorkerLostError as error:
                lost.append(host.name)
                why = str(error)
                continue
            return _Ended(job, answer, host.name, fetched)
        raise StepError(
            f"the workers that ran it were lost: {', '.join(lost)}; the last one: {why}",
            where=job.step.name,
            fix="see what ended them (their last lines, the kernel's log), or run it here: --executor local",
        )

    def _host_for(self, job: Job, lost: Sequence[str]) -> RemoteHost:
        """Return the worker that a job is for, or one that is as good.

        Raises:
            StepError: There is none, for a while.
        """
        wanted = next((each for each in self._known() if each.name == job.host), None)
        deadline_s = time.monotonic() + _GRACE_S
        while time.monotonic() < deadline_s and not self._closed.is_set():
            able = [each for each in [*self._alive.values()] if each.missing(job.step) is None]
            if wanted is not None and job.action.host is not None:
                able = [each for each in able if _is_like(each, wanted)]
            if able:
                return min(
                    able,
                    key=lambda each: (lost.count(each.name), each.name != job.host, each.name),
                )
            self._closed.wait(_LOOK_S)
        gone = f"the worker {lost[-1] if lost else job.host} was lost, and "
        raise StepError(
            f"{gone}no other one can run the step",
            where=job.step.name,
            fix=f"onnxbuild worker {self._scheduler}, then run again: what is finished is kept",
        )

    def _ask(self, job: Job, blobs: Mapping[str, Path], host: RemoteHost, attempt: int) -> Answer:
        text = job_text(job)
        for turn in range(_ROUNDS):
            key = f"{job.step.name}-{self._id}-{attempt}-{turn}"
            answer = self._call(host, job.step, key, text)
            if not answer.missing:
                return answer
            for digest in answer.missing:
                self._send(digest, blobs[digest.sha256], host)
        raise _WorkerLostError(f"what was sent to {host.name} did not arrive whole")

    def _call(self, host: RemoteHost, step: Step, key: str, text: str) -> Answer:
        """Have a worker run a step, and wait for its answer."""
        resources = {SLOTS: float(host.jobs if runs_alone(step) else 1)}
        if needs_gpu(step):
            resources[GPU_RESOURCE] = 1.0
        future = self._client.submit(
            remote.run_step, self._id, self._timeout_s, text,
            key=key, workers=[host.address], resources=resources, pure=False,
        )  # fmt: skip
        is_over = threading.Event()
        future.add_done_callback(lambda _: is_over.set())
        try:
            while not is_over.wait(_LOOK_S):
                self._check_alive(host)
            while True:
                try:
                    return Answer.read(future.result(timeout=5))
                except TimeoutError:
                    self._check_alive(host)
        except _WorkerLostError:
            raise
        except (Exception, CancelledError) as error:
            raise _WorkerLostError(f"{host.name}: {error}") from error
        finally:
            with contextlib.suppress(Exception):  # of a client that is closed
                future.cancel()

    def _check_alive(self, host: RemoteHost) -> None:
        if self._closed.is_set() or host.address not in self._alive:
            raise _WorkerLostError(f"{host.name} is gone")

    def _send(self, digest: Digest, path: Path, host: RemoteHost) -> None:
        lock = self._pushing.setdefault(host.address, threading.Lock())
        with lock, path.open("rb") as file:
            offset = 0
            while True:
                piece = file.read(_PIECE_BYTES)
                if not piece and offset:
                    return
                fault = self._at(
                    host, remote.take, self._id, digest.sha256, digest.size_bytes, offset, piece
                )
                if fault:
                    raise _WorkerLostError(f"{host.name} can't take what it needs: {fault}")
                offset += len(piece)
                if not piece:
                    return

    def _fetch(self, digests: Iterable[Digest], host: RemoteHost) -> Iterable[tuple[Path, Digest]]:
        """Yield files with the content that is not here."""
        for digest in dict.fromkeys(digests):
            if self._workspace.disk.blob(digest).exists():
                continue
            make_folder(self._folder.path)
            path = self._folder.path / str(next(self._numbers))
            found = hashlib.sha256()
            with path.open("wb") as file:
                for offset in range(0, digest.size_bytes, _PIECE_BYTES):
                    piece = self._at(
                        host, remote.give, digest.sha256, digest.size_bytes, offset, _PIECE_BYTES
                    )
                    found.update(piece)
                    file.write(piece)
            if found.hexdigest() != digest.sha256:
                raise _WorkerLostError(f"{host.name} gave other bytes than it said")
            yield path, digest

    def _at(self, host: RemoteHost, what: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in a worker."""
        try:
            return self._client.run(what, *arguments, workers=[host.address])[host.address]
        except Exception as error:
            raise _WorkerLostError(f"{host.name}: {error}") from error


def _is_like(one: RemoteHost, other: RemoteHost) -> bool:
    return one.facts() == other.facts() and one.drivers() == other.drivers()
