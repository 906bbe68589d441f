"""Names of executors, as `--executor` takes them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from onnxbuild.core.errors import UsageError, did_you_mean

LOCAL = "local"
FORMS = f"{LOCAL}, dask://HOST:PORT, dask+tls://HOST:PORT, dask:local?workers=N, slurm or slurm:PARTITION"

_SCHEDULER = re.compile(r"dask(\+tls)?://(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})/?")
_SLURM = re.compile(r"slurm(?::([\w.-]+))?")
_OWN = "dask:local"
_PORTS = 1 << 16
_NUMBER = re.compile(r"[1-9]\d{0,3}")
_TAG = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Dask cluster that steps run on.

    Attributes:
        text: What was written.
        scheduler: Address of its scheduler, as Dask writes it; empty for workers that the run starts itself.
        workers: How many of these.
        on: Tag of the workers that steps bound to a host run on; empty for any.
    """

    text: str
    scheduler: str = ""
    workers: int = 0
    on: str = ""


@dataclass(frozen=True, slots=True)
class Slurm:
    """Slurm cluster that steps run on, each as a batch job.

    Attributes:
        text: What was written.
        partition: Slurm's; empty for its default.
        jobs: Batch jobs at a time.
        cpus: Cores of each.
        gpus: GPUs of each job whose step needs one; 0 where there are none.
    """

    text: str
    partition: str = ""
    jobs: int = 16
    cpus: int = 2
    gpus: int = 0


def read_executor(text: str, where: str = "") -> Cluster | Slurm | None:
    """Return the cluster that an executor names; None for this machine's own processes.

    Args:
        text: `local`, or one of FORMS.
        where: Where it is written, for the message; empty for the command line.

    Raises:
        UsageError: It names none.
    """
    if text == LOCAL:
        return None
    name, _, query = text.partition("?")
    if (found := _SCHEDULER.fullmatch(name)) and 0 < int(found[3]) < _PORTS:
        tls, host, port = found.groups()
        options = _options(text, query, {"on": _TAG}, where)
        tag = tag_of(options.get("on", ""))
        return Cluster(text, f"{'tls' if tls else 'tcp'}://{host}:{port}", on=tag)
    if name == _OWN:
        options = _options(text, query, {"workers": _NUMBER}, where)
        return Cluster(text, workers=int(options.get("workers", 2)))
    if found := _SLURM.fullmatch(name):
        options = _options(text, query, dict.fromkeys(("jobs", "cpus", "gpus"), _NUMBER), where)
        return Slurm(text, found[1] or "", **{key: int(value) for key, value in options.items()})
    raise UsageError(
        f"there is no executor '{text}'; expected {FORMS}", where=where, fix=_meant(text)
    )


def tag_of(text: str) -> str:
    """Return a worker's tag as it is compared: `AVX512-VNNI` and `avx512_vnni` are one."""
    return text.lower().replace("-", "_")


def _options(
    text: str, query: str, known: Mapping[str, re.Pattern[str]], where: str
) -> dict[str, str]:
    """Return the options after the question mark.

    Raises:
        UsageError: One is unknown, or has a value that it can't have.
    """
    found = {}
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if name not in known or not known[name].fullmatch(value.lower()):
            shown = " or ".join(f"{each}={_EXAMPLES[each]}" for each in known)
            raise UsageError(
                f"the executor '{text}' has the option '{part}'; expected {shown}",
                where=where,
                fix=f"--executor '{text.partition('?')[0]}?{shown.partition(' or ')[0]}'",
            )
        found[name] = value
    return found


_EXAMPLES = {"on": "avx512_vnni", "workers": "4", "jobs": "16", "cpus": "4", "gpus": "1"}


def _meant(text: str) -> str:
    """Return what to type instead."""
    address = re.search(r"([\w.-]+):(\d{1,5})/?$", text)
    if address is not None:
        port = address[2] if 0 < int(address[2]) < _PORTS else 8786
        return f"--executor dask://{address[1]}:{port}"
    if re.fullmatch(r"dask\W*//?[\w.-]+/?", text):
        return f"--executor dask://{text.rpartition('/')[2] or 'HOST'}:8786"
    near = did_you_mean(text.partition("?")[0], (LOCAL, _OWN, "slurm"))
    return f"--executor {near.split(chr(39))[1]}" if near else f"--executor {_OWN}?workers=4"
