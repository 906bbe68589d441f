"""A worker: a process of a Dask cluster that runs steps; what drivers call in it, and how it is started."""

import asyncio
import contextlib
import json
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.cluster.description import description
from onnxbuild.cluster.requirements import SLOTS
from onnxbuild.cluster.session import Session, WorkerPlace
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, StepError, UsageError


class _Service:
    """Service of a worker process: its place, and a session for each run of a driver."""

    def __init__(self, place: WorkerPlace) -> None:
        self.place = place
        self.said = json.dumps(description(place))
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def session(self, run: str, timeout_s: float) -> Session:
        """The session of a run, begun at its first job."""
        with self._lock:
            if run not in self._sessions:
                self._sessions[run] = Session(self.place, timeout_s, self._ended)
            return self._sessions[run]

    def known(self, run: str) -> Session | None:
        """The session of a run, if it has one."""
        with self._lock:
            return self._sessions.get(run)

    def _ended(self, session: Session) -> None:
        with self._lock:
            self._sessions = {n: each for n, each in self._sessions.items() if each is not session}

    def close(self) -> None:
        """End all sessions."""
        with self._lock:
            sessions = list(self._sessions.values())
        for each in sessions:
            each.stop()
        for each in sessions:
            each.join()


_SERVICES: list[_Service] = []
"""The one of this process, if it is a worker."""


def _service() -> _Service:
    if not _SERVICES:
        raise RuntimeError("it was not started by `onnxbuild worker`")
    return _SERVICES[0]


# --- called by drivers, in the worker's process -------------------------------------------------------


def describe() -> str:
    """Return what a driver has to know of this worker, as JSON."""
    return _service().said


def run_step(run: str, timeout_s: float, text: str) -> str:
    """Run a step; see messages.

    Args:
        run: Name of the driver's run.
        timeout_s: Wall time of one step.
        text: The job.
    """
    return _service().session(run, timeout_s).run(text)


def take(run: str, sha256: str, size_bytes: int, offset: int, piece: bytes) -> str:
    """Take a piece of content; return why it can't be written, or nothing."""
    session = _service().known(run)
    if session is None:
        return "its run has ended"
    try:
        session.take(Digest(sha256, size_bytes), offset, piece)
    except (OSError, BuildError) as error:
        return str(error)
    return ""


def give(sha256: str, size_bytes: int, offset: int, length: int) -> bytes:
    """Return a piece of content.

    Raises:
        OSError: It is not here.
    """
    digest = Digest(sha256, size_bytes)  # refuses what is no digest, such as a path
    path = _service().place.store / "cas" / "sha256" / digest.sha256[:2] / digest.sha256
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def keep(run: str) -> None:
    """Note that the driver of a run lives."""
    session = _service().known(run)
    if session is not None:
        session.heard()


def stop(run: str) -> None:
    """End what runs for a driver, at once."""
    session = _service().known(run)
    if session is not None:
        session.stop()


# --- how it is started --------------------------------------------------------------------------------


def serve(
    scheduler: str,
    place: WorkerPlace,
    *,
    host: str,
    resources: Mapping[str, float],
    say: Callable[[str], None],
) -> None:
    """Be a worker until a signal comes, or the scheduler is gone.

    Args:
        scheduler: Its address, as Dask writes it.
        place: What this worker has.
        host: Address of this machine to listen at.
        resources: What it has besides room for steps.
        say: Takes a line for people.

    Raises:
        UsageError: Dask is not installed, or the scheduler gives no answer.
        StepError: The scheduler is gone.
    """
    service = _Service(place)
    _SERVICES[:] = [service]
    try:
        asyncio.run(_serve(scheduler, place, host, resources, say))
    finally:
        service.close()
        _SERVICES.clear()


async def _serve(
    scheduler: str,
    place: WorkerPlace,
    host: str,
    resources: Mapping[str, float],
    say: Callable[[str], None],
) -> None:
    distributed = import_distributed()
    need_certificates(distributed, scheduler, "worker")
    worker = distributed.Worker(
        scheduler,
        nthreads=place.jobs,
        name=place.name,
        host=host,
        resources={SLOTS: place.jobs, **resources},
        memory_limit=0,
        dashboard=False,
        dashboard_address=f"{host}:0",
        death_timeout=30,
    )
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # not on Windows
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        await worker
    except (OSError, TimeoutError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"the scheduler {scheduler} can't be joined: {error}",
            fix="dask scheduler --host 127.0.0.1 --port 8786 --no-dashboard",
        ) from error
    say(f"worker {place.name} at {worker.address}: {place.jobs} steps at a time, for {scheduler}")
    ends = [asyncio.ensure_future(stopped.wait()), asyncio.ensure_future(worker.finished())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for each in _SERVICES:
        await asyncio.to_thread(each.close)
    await worker.close()
    if not stopped.is_set():
        raise StepError(f"the scheduler {scheduler} is gone")


def import_distributed() -> Any:
    """Return Dask's package, set up to be quiet and to listen nowhere by itself.

    Raises:
        UsageError: It is not installed.
    """
    import logging

    try:
        import dask
        import distributed
    except ImportError:
        raise UsageError(
            "a cluster needs the package distributed, which is not installed",
            fix="pip install 'onnxbuild[cluster]'",
        ) from None
    dask.config.set(
        {"distributed.worker.http.routes": [], "distributed.scheduler.http.routes": []}
    )
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return distributed


def need_certificates(distributed: Any, address: str, role: str) -> None:
    """Refuse an address that needs TLS where Dask's settings have no certificates.

    Args:
        distributed: Dask.
        address: As Dask writes it.
        role: `client` or `worker`.

    Raises:
        UsageError: They have none.
    """
    if address.startswith("tls://"):
        known = distributed.Security().get_tls_config_for_role(role)
        if not (known["ca_file"] and known["cert"]):
            raise UsageError(
                f"{address} needs TLS, and Dask's settings name no certificates for a {role}",
                fix="see docs/cluster.md: ~/.config/dask/tls.yaml",
            )


def project_of(folder: Path) -> Path:
    """Return the root of the project that a folder is in."""
    from onnxbuild.project_folder import find_project

    return find_project(folder / "recipe.yaml")
