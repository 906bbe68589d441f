"""A batch job of Slurm: describe its node, or run one step there. Slurm's script calls it; see slurm.py.

python -m onnxbuild.cluster.slurm_job '{"folder": ..., "number": 0, ...}'
"""

import json
import os
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import write_atomically
from onnxbuild.cluster.description import description
from onnxbuild.cluster.session import Session, WorkerPlace

ALIVE = "alive"
"""File that the driver writes something new into, as long as it lives."""

LOOK_S = 10.0


@dataclass(frozen=True, slots=True)
class BatchJob:
    """Facts that a batch job has to know; `text` is its argument.

    Attributes:
        folder: Of the run, in the store.
        number: Of the job, in the run.
        project: The project's folder, the same on all machines.
        store: The store's folder, likewise.
        cpus: Cores that the step may use.
        memory_bytes: For the step.
        timeout_s: Wall time of the step.
    """

    folder: str
    number: int
    project: str
    store: str
    cpus: int
    memory_bytes: int
    timeout_s: float

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @property
    def request(self) -> Path:
        """File of the step, as `messages.job_text` writes it; it is not there where the node is to be described."""
        return Path(self.folder) / f"{self.number}.job"

    @property
    def answer(self) -> Path:
        """File of the answer."""
        return Path(self.folder) / f"{self.number}.answer"

    @property
    def output(self) -> Path:
        """File of what the batch job prints."""
        return Path(self.folder) / f"{self.number}.out"


def main(text: str) -> None:
    """Do what a batch job is for, and write the answer."""
    job = BatchJob(**json.loads(text))
    cores = sorted(os.sched_getaffinity(0))[: job.cpus]  # with --exclusive Slurm gives more
    os.sched_setaffinity(0, cores)
    place = WorkerPlace(
        Path(job.project), Path(job.store), 1, job.memory_bytes, socket.gethostname(), index=False
    )
    answer = _run(job, place) if job.request.exists() else json.dumps(description(place))
    write_atomically(job.answer, answer.encode(), Path(job.folder))


def _run(job: BatchJob, place: WorkerPlace) -> str:
    session = Session(place, job.timeout_s, lambda _: None)
    over = threading.Event()
    watch = threading.Thread(target=_keep, args=(Path(job.folder), session, over), daemon=True)
    watch.start()
    try:
        return session.run(job.request.read_text())
    finally:
        over.set()
        session.stop()
        session.join()


def _keep(folder: Path, session: Session, over: threading.Event) -> None:
    """Let the session live as long as the driver does."""
    last = ""
    while not over.wait(LOOK_S):
        try:
            now = (folder / ALIVE).read_text()
        except OSError:
            continue
        if now != last:
            session.heard()
        last = now


if __name__ == "__main__":
    main(sys.argv[1])
