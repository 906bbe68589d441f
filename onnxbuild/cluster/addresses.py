"""Names of executors, as `--executor` takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onnxbuild.core.errors import UsageError, did_you_mean

LOCAL = "local"
FORMS = f"{LOCAL}, dask://HOST:PORT, dask+tls://HOST:PORT or dask:local?workers=N"

_SCHEDULER = re.compile(r"dask(\+tls)?://(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})/?")
_OWN = re.compile(r"dask:local(?:\?workers=(\d{1,3}))?")
_WORKERS = 2
_PORTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Cluster:
    """Cluster that steps run on.

    Attributes:
        text: What was written.
        scheduler: Address of its scheduler, as Dask writes it; empty for workers that the run starts itself.
        workers: How many of these.
    """

    text: str
    scheduler: str = ""
    workers: int = 0


def read_executor(text: str, where: str = "") -> Cluster | None:
    """Return the cluster that an executor names; None for this machine's own processes.

    Args:
        text: `local`, or one of FORMS.
        where: Where it is written, for the message; empty for the command line.

    Raises:
        UsageError: It names none.
    """
    if text == LOCAL:
        return None
    if found := _SCHEDULER.fullmatch(text):
        tls, host, port = found.groups()
        if 0 < int(port) < _PORTS:
            return Cluster(text, f"{'tls' if tls else 'tcp'}://{host}:{port}")
    elif (found := _OWN.fullmatch(text)) and found[1] != "0":
        return Cluster(text, workers=int(found[1] or _WORKERS))
    raise UsageError(
        f"there is no executor '{text}'; expected {FORMS}", where=where, fix=_meant(text)
    )


def _meant(text: str) -> str:
    """Return what to type instead."""
    address = re.search(r"([\w.-]+):(\d{1,5})/?$", text)
    if address is not None:
        port = address[2] if 0 < int(address[2]) < _PORTS else 8786
        return f"--executor dask://{address[1]}:{port}"
    if re.fullmatch(r"dask\W*//?[\w.-]+/?", text):
        return f"--executor dask://{text.rpartition('/')[2] or 'HOST'}:8786"
    near = did_you_mean(text.partition("?")[0], (LOCAL, "dask:local"))
    return f"--executor {near.split(chr(39))[1]}" if near else "--executor dask:local?workers=4"
