"""The Node that runs npm's packages: where it is, and what of it enters keys."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence

from onnxbuild.adapters.disk.statcache import ABSENT, StatCache
from onnxbuild.adapters.toolchain.step_environment import program_folders
from onnxbuild.core.environment import NODE

_ASK = "process.stdout.write(JSON.stringify([process.version, process.arch, process.versions]))"
_TIMEOUT_S = 60.0
_OWN_FOLDERS = ("include/node", "lib/node_modules")
"""Subfolders that tell that a Node was unpacked into a folder of its own (nvm, fnm, volta)."""


def program(name: str) -> str | None:
    """Return the absolute path of `node` or `npm` on the user's PATH, or where steps look; None for none."""
    return next((each for each in _candidates(name) if os.access(each, os.X_OK)), None)


def find_node(stats: StatCache) -> str | None:
    """Return the first Node that runs, links resolved; None where there is none.

    Args:
        stats: Notes where it was looked for.
    """
    for path in _candidates(NODE):
        if stats.look(path) != ABSENT and os.access(path, os.X_OK) and not os.path.isdir(path):
            found = os.path.realpath(path)
            if node_build(found, stats):
                return found
    return None


def node_build(path: str, stats: StatCache) -> str | None:
    """Return `node VERSION sha256`, of what it says of itself; None where it does not run.

    It is started once, and again when it has changed.

    Args:
        path: Absolute.
        stats: Remembers its answer.
    """
    return stats.digest(path, "node ", _answer)


def node_folders(path: str) -> Sequence[str]:
    """Return what a step may read to run it: its program, and its own folder where it has one."""
    folder = os.path.dirname(os.path.dirname(path))
    is_own = any(os.path.isdir(os.path.join(folder, each)) for each in _OWN_FOLDERS)
    return (path, folder) if is_own and folder not in {"/usr", "/usr/local"} else (path,)


def _candidates(name: str) -> list[str]:
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *program_folders()]
    return [os.path.join(each, name) for each in dict.fromkeys(folders) if os.path.isabs(each)]


def _answer(path: str) -> str | None:
    try:
        done = subprocess.run(
            [path, "-e", _ASK],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            env={"PATH": os.defpath},
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = done.stdout.split('"')[1] if done.stdout.startswith('["') else "unknown"
    return f"{NODE} {version} {hashlib.sha256(done.stdout.encode()).hexdigest()}"
