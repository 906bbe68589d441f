"""The surroundings of a step: the variables that it sees, the cores that it may use."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from onnxbuild.core.host_variables import PASSED_ON

_SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
_NO_HOME = "/nonexistent"  # until a step has one of its own; Debian's name for it


@dataclass(frozen=True, slots=True)
class StepEnvironment:
    """Surroundings that must not matter to any step's output; the defaults are those of every build.

    Attributes:
        hash_seed: PYTHONHASHSEED.
        threads: Cores that a step may use, and threads that libraries start of themselves; None
            for all there are.
        time_zone: TZ, as POSIX writes it.
        locale: LANG.
        umask: What new files may not be to others.
        original: Where the project really is, if what is built is a copy of it: that folder
            can't be read, and what the import path has of it (editable installations) is looked
            for in the copy. Empty if it is no copy.
    """

    hash_seed: int = 0
    threads: int | None = None
    time_zone: str = "UTC"
    locale: str = "C.UTF-8"
    umask: int = 0o022
    original: str = ""


ORDINARY = StepEnvironment()


def clean_environment(
    environment: Mapping[str, str], surroundings: StepEnvironment = ORDINARY
) -> dict[str, str]:
    """The environment of a child: a few variables passed on, which enter keys; the rest fixed."""
    kept = {name: environment[name] for name in PASSED_ON if name in environment}
    threads = surroundings.threads
    return {
        **kept,
        "PATH": ":".join(program_folders()),
        "HOME": _NO_HOME,
        "LANG": surroundings.locale,
        "TZ": surroundings.time_zone,
        "PYTHONHASHSEED": str(surroundings.hash_seed),
        **({} if threads is None else _counts(threads)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "ORT_DISABLE_TELEMETRY": "1",
    }


def program_folders() -> tuple[str, ...]:
    """Return where steps find programs."""
    return (os.path.dirname(sys.executable), *_SYSTEM_FOLDERS)


def _counts(threads: int) -> dict[str, str]:
    """Return the variables that libraries, and Python from 3.13 on, take for the number of cores."""
    return {"OMP_NUM_THREADS": str(threads), "PYTHON_CPU_COUNT": str(threads)}


class Cores:
    """This process's cores, of which each step gets a share.

    Args:
        count: How many a step gets, and os.cpu_count() returns from now on; None for all.
    """

    def __init__(self, count: int | None) -> None:
        able = hasattr(os, "sched_setaffinity")  # Linux
        self._all = sorted(os.sched_getaffinity(0)) if able else []
        self._count = len(self._all) if count is None else min(count, len(self._all))
        if count is not None:
            os.cpu_count = lambda: count  # multiprocessing.cpu_count() asks it, too

    def take(self, number: int) -> None:
        """Keep this process to the cores of job `number`; parallel jobs get others."""
        if self._count < len(self._all):
            first = number * self._count
            share = (self._all * 2)[first % len(self._all) :][: self._count]
            os.sched_setaffinity(0, share)
