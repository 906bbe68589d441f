"""The executor whose steps are batch jobs of Slurm, on a store that all nodes see."""

import contextlib
import itertools
import json
import math
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import make_folder, write_atomically
from onnxbuild.building.wiring import Workspace
from onnxbuild.cluster.addresses import Slurm
from onnxbuild.cluster.description import DescribedHost, Likeness
from onnxbuild.cluster.messages import Answer, failed, job_text
from onnxbuild.cluster.outcomes import ended
from onnxbuild.cluster.requirements import needs_gpu, runs_alone
from onnxbuild.cluster.run_folder import RunFolder
from onnxbuild.cluster.slurm_job import ALIVE, BatchJob
from onnxbuild.core.errors import StepError, UsageError
from onnxbuild.core.graph import Step
from onnxbuild.core.ports import Done, Host, Job, Missing
from onnxbuild.engine.schedule import guess_bytes

_POLL_S = 0.2
_LOOK_S = 2.0  # between looks at the queue
_KEEP_S = 10.0  # between signs of life
_LATE_S = 15.0
"""An answer may be seen that long after its batch job has left the queue: file systems of clusters cache."""
_ATTEMPTS = 4
_HEADROOM = 1.5  # of memory, over the last peak
_SPARE_S = 120.0  # for a batch job to start and end
_NO_LIMIT = 1 << 60  # Slurm knows what its nodes have
_COMMAND_S = 60.0
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class SlurmHost(DescribedHost):
    """The nodes of a partition, which are alike; see core.ports.Host.

    Attributes:
        asked: What `--executor` says.
    """

    asked: Slurm

    def missing(self, step: Step) -> Missing | None:
        """Return the resource that a step needs and no batch job asks for."""
        if needs_gpu(step) and not self.asked.gpus:
            return Missing("a GPU, and batch jobs ask for none", fix="--executor 'slurm?gpus=1'")
        return None


@dataclass(frozen=True, slots=True)
class _Running:
    """A batch job under way.

    Attributes:
        id: Slurm's.
        attempt: How many were lost before.
        lost_s: When it was found to be gone from the queue; 0 while it is there.
    """

    job: Job
    batch: BatchJob
    id: str
    attempt: int = 0
    lost_s: float = 0.0


class SlurmExecutor:
    """Runs jobs as batch jobs of Slurm; implements Executor.

    A job is a file in the store, and so is its answer: nothing listens, and no content is sent.

    Args:
        asked: What `--executor` says.
        workspace: The driver's.
        timeout_s: Wall time of one step.
        say: Takes a line for people.

    Raises:
        UsageError: Slurm is not here, it takes no batch job, or its nodes are not like this machine.
    """

    def __init__(
        self, asked: Slurm, workspace: Workspace, *, timeout_s: float, say: Callable[[str], None]
    ) -> None:
        self._asked, self._workspace = asked, workspace
        self._timeout_s, self._say = timeout_s, say
        self._numbers = itertools.count()
        self._signs = itertools.count()
        self._kept_s = self._looked_s = 0.0
        self._running: list[_Running] = []
        self._failed: list[Done] = []
        _need_slurm()
        self._folder = RunFolder(workspace.root)
        make_folder(self._folder.path)
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self._host = self._describe()
            undo.pop_all()

    def _describe(self) -> SlurmHost:
        """Return the nodes, as the first batch job finds its own."""
        batch = self._batch(1 << 30)
        number = self._submit(batch, "describe")
        self._say(f"Slurm's batch job {number} looks at a node of {self._asked.text}")
        while not _is_there(batch.answer):
            self._keep_alive()
            if number not in self._queued() and not self._comes_late(batch):
                raise UsageError(
                    f"Slurm's batch job {number} ended without an answer: {_tail(batch.output)}",
                    fix="give the project, its environment and the store the same paths on all nodes (--store FOLDER)",
                )
            time.sleep(_POLL_S)
        said = json.loads(batch.answer.read_text())
        if differs := Likeness().differences(said):
            raise UsageError(
                f"the nodes of {self._asked.text} are not as this machine: they have {differs}",
                fix="start the build from the environment that the nodes see",
            )
        said |= {"jobs": self._asked.jobs, "memory_bytes": _NO_LIMIT}
        return SlurmHost("slurm", said, self._asked)

    # --- the port -------------------------------------------------------------------------------

    def hosts(self) -> Sequence[Host]:
        """Return the nodes, which are one host: Slurm chooses among them."""
        return [self._host]

    def expect(self) -> None:
        """Do nothing: each batch job gets ready itself."""

    def start(self, job: Job) -> None:
        """Queue a step."""
        known = self._workspace.history.peak_bytes(job.step.name)
        inputs = sum(artifact.size_bytes for artifact in job.inputs.values())
        self._queue(job, int(known * _HEADROOM) if known else guess_bytes(inputs), attempt=0)

    def wait(self, timeout_s: float) -> list[Done]:
        """Return the jobs that ended, after waiting at most `timeout_s` for one."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            self._keep_alive()
            found, self._failed = self._failed, []
            for each in [*self._running]:
                if _is_there(each.batch.answer):
                    self._running.remove(each)
                    answer = Answer.read(each.batch.answer.read_text())
                    if answer.missing:
                        answer = failed(_not_shared(each.job.step.name))
                    found.append(ended(each.job, answer, self._workspace, "of Slurm"))
            if found or time.monotonic() >= deadline_s:
                return found
            self._look_for_lost()
            time.sleep(min(_POLL_S, timeout_s))

    def close(self) -> None:
        """Stop whatever still runs, at once."""
        if self._running:
            with contextlib.suppress(UsageError):  # Slurm is gone: its jobs see that nobody lives
                _slurm("scancel", *(each.id for each in self._running))
        self._running = []
        self._folder.close()

    # --- batch jobs -----------------------------------------------------------------------------

    def _batch(self, memory_bytes: int) -> BatchJob:
        workspace = self._workspace
        return BatchJob(
            str(self._folder.path), next(self._numbers), str(workspace.project),
            str(workspace.root), self._asked.cpus, memory_bytes, self._timeout_s,
        )  # fmt: skip

    def _queue(self, job: Job, memory_bytes: int, attempt: int) -> None:
        batch = self._batch(memory_bytes)
        write_atomically(batch.request, job_text(job).encode(), self._folder.path)
        options = ["--exclusive"] if runs_alone(job.step) else []
        if needs_gpu(job.step):
            options.append(f"--gres=gpu:{self._asked.gpus}")
        try:
            number = self._submit(batch, job.address.local, *options)
        except UsageError as error:
            fault = StepError(error.what, where=job.step.name, fix=error.fix)
            self._failed.append(failed(fault).done(job))
            return
        self._running.append(_Running(job, batch, number, attempt))

    def _submit(self, batch: BatchJob, name: str, *options: str) -> str:
        """Queue a batch job; return Slurm's number of it."""
        command = [sys.executable, "-m", "onnxbuild.cluster.slurm_job", batch.text()]
        partition = [f"--partition={self._asked.partition}"] if self._asked.partition else []
        minutes = math.ceil((self._timeout_s + _SPARE_S) / 60)
        answer = _slurm(
            "sbatch", "--parsable", f"--job-name=onnxbuild {name}", f"--output={batch.output}",
            f"--chdir={batch.project}", "--ntasks=1", f"--cpus-per-task={batch.cpus}",
            f"--mem={math.ceil(batch.memory_bytes / _MIB)}M", f"--time={minutes}", "--no-requeue",
            *partition, *options, f"--wrap=exec {shlex.join(command)}",
        )  # fmt: skip
        return answer.strip().partition(";")[0]

    def _queued(self) -> set[str]:
        """Return the numbers of the batch jobs that wait or run."""
        return set(_slurm("squeue", "--noheader", "--me", "--format=%i").split())

    def _comes_late(self, batch: BatchJob) -> bool:
        """Wait for an answer whose batch job has left the queue; return whether it came."""
        deadline_s = time.monotonic() + _LATE_S
        while time.monotonic() < deadline_s and not _is_there(batch.answer):
            time.sleep(_POLL_S)
        return _is_there(batch.answer)

    def _look_for_lost(self) -> None:
        """Queue the steps again whose batch jobs ended without an answer."""
        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_S or not self._running:
            return
        self._looked_s = now_s
        try:
            queued = self._queued()
        except UsageError:
            return  # a controller that restarts
        for each in [*self._running]:
            if each.id in queued:
                continue
            if not each.lost_s:
                self._running[self._running.index(each)] = replace(each, lost_s=now_s)
            elif now_s - each.lost_s > _LATE_S:
                self._running.remove(each)
                self._again(each)

    def _again(self, lost: _Running) -> None:
        why = _tail(lost.batch.output)
        if lost.attempt + 1 < _ATTEMPTS:
            self._say(f"the batch job {lost.id} of {lost.job.step.name} was lost: {why}")
            self._queue(lost.job, 2 * lost.batch.memory_bytes, lost.attempt + 1)
            return
        fault = StepError(
            f"{_ATTEMPTS} batch jobs were lost; the last one: {why}",
            where=lost.job.step.name,
            fix=f"see what ended them: sacct -j {lost.id}; or run it here: --executor local",
        )
        self._failed.append(failed(fault).done(lost.job))

    def _keep_alive(self) -> None:
        now_s = time.monotonic()
        if now_s - self._kept_s > _KEEP_S:
            self._kept_s = now_s
            sign = str(next(self._signs)).encode()
            write_atomically(self._folder.path / ALIVE, sign, self._folder.path)


def _need_slurm() -> None:
    if missing := [each for each in ("sbatch", "squeue", "scancel") if not shutil.which(each)]:
        raise UsageError(
            f"the executor slurm needs {', '.join(missing)}, not found on PATH",
            fix="build on a login node of the cluster, or: --executor local",
        )


def _slurm(*command: str) -> str:
    """Return what a command of Slurm prints.

    Raises:
        UsageError: It fails.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_COMMAND_S, check=True
        )
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise UsageError(
            f"{command[0]} failed: {' '.join(said.split())[-300:]}",
            fix="see that Slurm is up: sinfo",
        ) from error
    return done.stdout


def _is_there(path: Path) -> bool:
    """Return whether a file is there, by a listing: a network's file system may remember that it was not."""
    return path in path.parent.iterdir()


def _not_shared(step: str) -> StepError:
    return StepError(
        "its node does not see what is in the store",
        where=step,
        fix="give a store on a file system that all nodes share: --store FOLDER",
    )


def _tail(path: Path) -> str:
    """Return the last line that a batch job printed."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it printed nothing"
