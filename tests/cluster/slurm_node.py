"""Slurm on one node, from Debian's packages, in a folder: a controller and a daemon on loopback, without munge."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from onnxbuild.adapters import machine
from tests.adapters.remote.servers import free_port
from tests.servers import missing

_PATIENCE_S = 60.0
CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={controller}
SlurmdPort={daemon}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the variables of a client."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    programs = {name: shutil.which(name, path=path) for name in ("slurmctld", "slurmd", "sinfo")}
    if not all(programs.values()):
        missing("slurmctld")
    if os.geteuid() != 0:
        pytest.skip("slurmd runs jobs as other users: it needs root")
    host = socket.gethostname().partition(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    conf = folder / "slurm.conf"
    conf.write_text(
        CONF.format(
            host=host, folder=folder, controller=free_port(), daemon=free_port(),
            cpus=os.cpu_count(), memory=machine.memory_bytes() >> 20,
        )
    )  # fmt: skip
    variables = {"SLURM_CONF": str(conf)}
    environment = {**os.environ, **variables}
    with ExitStack() as cleanup:
        for name, options in (("slurmctld", ["-D", "-i"]), ("slurmd", ["-D", "-N", host])):
            log = cleanup.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [str(programs[name]), *options, "-f", str(conf)],
                env=environment, stdout=log, stderr=log,
            )  # fmt: skip
            cleanup.callback(process.wait, 30)
            cleanup.callback(process.terminate)
        deadline = time.monotonic() + _PATIENCE_S
        while "idle" not in _nodes(str(programs["sinfo"]), environment):
            logs = "".join(path.read_text() for path in folder.glob("*.log"))
            assert time.monotonic() < deadline, logs[-4000:]
            time.sleep(0.2)
        yield variables


def _nodes(sinfo: str, environment: dict[str, str]) -> str:
    command = [sinfo, "--noheader", "--format=%t"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    ).stdout
