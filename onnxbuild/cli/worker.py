"""`onnxbuild worker`."""

import os
import socket
from pathlib import Path

import click

from onnxbuild.cli.options import Bytes, PathName, jobs_option
from onnxbuild.core.errors import UsageError

_LOOPBACK = "127.0.0.1"
_LOCAL_NAMES = (_LOOPBACK, "localhost", "[::1]")


@click.command("worker")
@click.argument("scheduler")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="NAME",
    help="What this machine is or has. `gpu`: steps for a GPU come here. Others are yours, for "
    "`--executor dask://HOST:PORT?on=NAME`; each worker has the names of the target CPUs that it is, too: "
    "avx2, avx512_vnni, amx, arm64. May be given several times.",
)
@click.option(
    "--project",
    type=PathName(exists=True, file_okay=False, path_type=Path),
    default=".",
    metavar="FOLDER",
    help="This machine's copy of the project [default: the working folder].",
)
@click.option(
    "--store",
    type=PathName(),
    metavar="FOLDER",
    help="Keep artifacts here instead of artifacts/ at the project's root "
    "(or set ONNXBUILD_STORE). One that the driver uses, too, saves all transfers.",
)
@click.option(
    "--host",
    default=_LOOPBACK,
    show_default=True,
    metavar="ADDRESS",
    help="This machine's address to listen at.",
)
@click.option(
    "--name", metavar="NAME", help="For messages [default: the machine's, with a number]."
)
@jobs_option()
@click.option(
    "--memory", type=Bytes(), help="Memory for all steps [default: 90 % of the machine's]."
)
def command(
    *,
    scheduler: str,
    tags: tuple[str, ...],
    project: Path,
    store: str | None,
    host: str,
    name: str | None,
    jobs: int | None,
    memory: int | None,
) -> None:
    """Run steps for drivers of a Dask cluster, until Ctrl-C.

    \b
    onnxbuild worker 127.0.0.1:8786
    onnxbuild worker tls://build.example:8786 --host 10.0.0.7 --tag gpu

    SCHEDULER is the address of `dask scheduler`. Whoever can reach a scheduler without TLS can run any
    program here: see docs/cluster.md.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.adapters import locate, machine
    from onnxbuild.cluster.requirements import GPU_RESOURCE, GPU_TAG, tags_of
    from onnxbuild.cluster.session import WorkerPlace
    from onnxbuild.cluster.worker import project_of, serve

    scheduler = scheduler.replace("dask+tls://", "tls://").replace("dask://", "tcp://")
    address = scheduler if "://" in scheduler else f"tcp://{scheduler}"
    protocol, _, rest = address.partition("://")
    there, colon, port = rest.rpartition(":")
    if protocol not in ("tcp", "tls") or not colon or not port.isdigit():
        raise UsageError(
            f"'{scheduler}' is no scheduler's address; expected HOST:PORT or tls://HOST:PORT",
            fix="onnxbuild worker 127.0.0.1:8786",
        )
    if there not in _LOCAL_NAMES and host == _LOOPBACK:
        raise UsageError(
            f"the scheduler is on {there}, and this worker would listen on loopback only",
            fix=f"onnxbuild worker {scheduler} --host ADDRESS, with this machine's address",
        )
    if host != _LOOPBACK and protocol != "tls":
        click.echo(
            f"warning: {host} without TLS: whoever reaches it can run any program here (docs/cluster.md)",
            err=True,
        )
    root = project_of(project.absolute())
    place = WorkerPlace(
        root,
        locate.store_root(root, store),
        jobs or machine.usable_cores(),
        memory or int(machine.memory_bytes() * 0.9),
        name or f"{socket.gethostname()}-{os.getpid()}",
        tuple(tags_of(machine.host_facts(), tags)),
    )
    resources = {GPU_RESOURCE: 1.0} if GPU_TAG in place.tags else {}
    serve(
        address, place, host=host, resources=resources, say=lambda line: click.echo(line, err=True)
    )
