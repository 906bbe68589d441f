"""From what `--executor` says to an executor: a cluster that is there, or one of the run's own."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from onnxbuild.adapters import machine
from onnxbuild.building.wiring import Workspace
from onnxbuild.cluster.addresses import Cluster, Slurm
from onnxbuild.cluster.executor import DaskExecutor
from onnxbuild.cluster.slurm import SlurmExecutor
from onnxbuild.cluster.worker import import_distributed, need_certificates
from onnxbuild.core.errors import UsageError
from onnxbuild.core.ports import Executor

_CONNECT_S = 10.0
_WORKERS_S = 30.0
_MEMORY_SHARE = 0.9


def connected(
    cluster: Cluster | Slurm,
    workspace: Workspace,
    *,
    jobs: int | None,
    memory_bytes: int | None,
    timeout_s: float,
    say: Callable[[str], None],
) -> Executor:
    """Return an executor on a cluster.

    Args:
        cluster: Which.
        workspace: The driver's.
        jobs: Of workers of the run's own: steps at a time, for all of them; None for one a core.
        memory_bytes: Of these: memory for all of them; None for 90 % of the machine's.
        timeout_s: Wall time of one step.
        say: Takes a line for people.

    Raises:
        UsageError: Dask or Slurm is not installed, it gives no answer, or there are no workers of use.
    """
    if isinstance(cluster, Slurm):
        return SlurmExecutor(cluster, workspace, timeout_s=timeout_s, say=say)
    distributed = import_distributed()
    if cluster.scheduler:
        need_certificates(distributed, cluster.scheduler, "client")
        client = _client(distributed, cluster.scheduler, None)
        return _ready(client, workspace, 1, timeout_s=timeout_s, say=say, on=cluster.on)
    own = _OwnCluster(distributed, workspace, cluster.workers, jobs, memory_bytes)
    with ExitStack() as undo:
        undo.callback(own.close)
        client = _client(distributed, own.address, own.security)
        executor = _ready(
            client, workspace, cluster.workers, timeout_s=timeout_s, say=say, end=own.close
        )
        undo.pop_all()
    return executor


def _ready(
    client: Any,
    workspace: Workspace,
    count: int,
    *,
    timeout_s: float,
    say: Callable[[str], None],
    on: str = "",
    end: Callable[[], None] = lambda: None,
) -> DaskExecutor:
    """Return an executor that has workers."""
    executor = DaskExecutor(client, workspace, timeout_s=timeout_s, say=say, on=on, end=end)
    with ExitStack() as undo:
        undo.callback(executor.close)
        executor.await_workers(count, _WORKERS_S if count > 1 else _CONNECT_S)
        undo.pop_all()
    return executor


def _client(distributed: Any, address: str, security: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # versions that differ: workers are compared one by one
            return distributed.Client(
                address, timeout=_CONNECT_S, set_as_default=False, security=security
            )
    except Exception as error:
        raise UsageError(
            f"the scheduler {address} gives no answer that Dask {distributed.__version__} takes: "
            f"{str(error).splitlines()[0] if str(error) else type(error).__name__}",
            fix="dask scheduler --host 127.0.0.1 --port 8786 --no-dashboard; "
            "with certificates: dask+tls://HOST:PORT",
        ) from error


class _OwnCluster:
    """A scheduler in this process and workers of this machine, which share its store; over TLS, with a key of its own.

    Args:
        distributed: Dask.
        workspace: The driver's.
        count: How many workers.
        jobs: Steps at a time, for all of them.
        memory_bytes: For all of them.
    """

    def __init__(
        self,
        distributed: Any,
        workspace: Workspace,
        count: int,
        jobs: int | None,
        memory_bytes: int | None,
    ) -> None:
        self.security = distributed.Security.temporary()
        self._cluster = distributed.LocalCluster(
            n_workers=0,
            processes=False,
            protocol="tls://",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            security=self.security,
        )
        self.address: str = self._cluster.scheduler_address
        of_all = memory_bytes or int(machine.memory_bytes() * _MEMORY_SHARE)
        each = max(1, (jobs or machine.usable_cores()) // count)
        command = [
            sys.executable, "-m", "onnxbuild", "worker", self.address,
            "--project", str(workspace.project), "--store", str(workspace.root),
            "--jobs", str(each), "--memory", str(of_all // count),
        ]  # fmt: skip
        variables = {**os.environ, **self._variables()}
        self._workers = [
            subprocess.Popen(
                [*command, "--name", f"local-{number}"],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the driver, which ends them
            )
            for number in range(1, count + 1)
        ]

    def _variables(self) -> dict[str, str]:
        """The key, for this user's processes alone."""
        role = self.security.get_tls_config_for_role("worker")
        prefix = "DASK_DISTRIBUTED__COMM__"
        return {
            f"{prefix}REQUIRE_ENCRYPTION": "True",
            f"{prefix}TLS__CA_FILE": role["ca_file"],
            f"{prefix}TLS__WORKER__CERT": role["cert"],
            f"{prefix}TLS__WORKER__KEY": role["key"],
        }

    def close(self) -> None:
        """End the workers and the scheduler."""
        for each in self._workers:
            each.terminate()
        for each in self._workers:
            try:
                each.wait(timeout=10)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()
        self._cluster.close(timeout=5)
