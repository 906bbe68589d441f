"""Up to date at a glance: the identities of all that the last good run looked at.

A run's outcome is a function of its request and of the files, folders and packages that it looked
at. When every one of them still has the identity it had, running again would change nothing, and
that is decided here, before anything else is loaded. Whatever differs, the full decision is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import eq
from pathlib import Path

from onnxbuild import __version__
from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.statcache import ABSENT, identity, settled
from onnxbuild.adapters.locate import cache_root
from onnxbuild.adapters.store.memos import note_use, read_memo, used_s, write_memo
from onnxbuild.adapters.toolchain.accelerator import gpu_models
from onnxbuild.adapters.toolchain.import_variables import import_variables
from onnxbuild.core.host_variables import HEADERS_VARIABLE

TYPE_CHECKING = False  # as in typing, which takes longer to import than a memo to be recalled
if TYPE_CHECKING:
    from typing import Any

OWN_FOLDERS = ("ac", "cas", "out")  # of a store

_TOUCH_S = 24 * 3600.0  # often enough for garbage collection, which counts in days


def request_key(
    recipes: Sequence[str],
    only: Sequence[str],
    settings: Mapping[str, str],
    projects: Iterable[Path],
    store: Path,
    *,
    locked: bool = False,
    kinds: str = "",
) -> str:
    """Return what was asked of which machine, interpreter and step kinds: 64 hex digits."""
    asked = [
        __version__,
        sys.prefix,
        [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))],
        import_variables(os.environ),
        os.environ.get(HEADERS_VARIABLE),
        sorted({str(project) for project in projects}),
        [os.path.abspath(path) for path in recipes],
        list(only),
        dict(settings),
        os.path.expanduser("~"),
        locked,
        kinds,
        str(store),
        machine.python_build(),
        machine.host_class(),
        machine.driver_facts(),
        gpu_models(),
    ]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def recall(root: Path, request: str, environment: Mapping[str, str]) -> dict[str, Any] | None:
    """The summary of the last successful run, if nothing that it looked at has changed.

    Args:
        request: From `request_key`.
        environment: This process's variables; those that the recipes pass on must be as they were.
    """
    try:
        found, paths, identities = read_memo(root, request)
        summary = _checked(found)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if any(environment.get(name) != value for name, value in summary["environment"].items()):
        return None
    if not all(map(eq, map(identity, paths), identities)):
        return None
    if time.time() - used_s(root, request) > _TOUCH_S:
        note_use(root, request)
        _note_environments(summary.get("environments", ()))
    return summary


def seen_paths(root: Path, request: str) -> list[str]:
    """Return the absolute paths that the last good run of a request looked at; none without a memo."""
    try:
        return read_memo(root, request)[1]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _note_environments(environments: Iterable[str]) -> None:
    """Set the last use of environments to now; paths from the store outside of this user's cache are ignored."""
    made = os.path.join(cache_root(), "environments")
    for folder in environments:
        if os.path.dirname(folder) == made:
            with contextlib.suppress(OSError):  # removed meanwhile
                # see virtual_environments.lock_path
                os.utime(f"{folder}.lock", follow_symlinks=False)


def remember(
    root: Path,
    request: str,
    summary: Mapping[str, Any],
    seen: Mapping[str, str],
    restless: AbstractSet[str],
    *,
    started_ns: int,
) -> bool:
    """Keep what a successful run looked at; returns whether it could be kept.

    Args:
        root: The store's folder; what changes below it is this program's own doing.
        request: From `request_key`.
        summary: JSON, with the variables that recipes pass on under `environment`, and the folders of
            targets' environments, whose last use is noted, under `environments`.
        seen: Absolute path -> identity when it was last looked at.
        restless: Those of `seen` that had another identity earlier in the run.
        started_ns: Wall clock at the run's start. An input that changed later, or so shortly
            before that a second change could hide in the same clock tick, makes the memo unsafe.
    """
    own = tuple(f"{root / name}{os.sep}" for name in OWN_FOLDERS)
    for path, found in seen.items():
        if path.startswith(own):
            continue
        if path in restless:
            return False
        if found != ABSENT and not settled(found, started_ns):
            return False
    return write_memo(root, request, summary, seen)


def _checked(summary: object) -> dict[str, Any]:
    """Return a summary; refuse what `remember` did not write.

    Raises:
        KeyError, TypeError: It is none of its summaries.
    """
    if not isinstance(summary, dict):
        raise TypeError("not a summary")
    folders = summary.get("environments", [])
    if not (
        isinstance(folders, list)
        and isinstance(summary["environment"], dict)
        and all(isinstance(folder, str) and "\0" not in folder for folder in folders)
    ):
        raise TypeError("not a summary")
    return summary
