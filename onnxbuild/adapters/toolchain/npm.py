"""Node and npm: the program, and the lists of packages that recipes name."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.adapters.disk.statcache import ABSENT, StatCache
from onnxbuild.adapters.toolchain.step_environment import program_folders
from onnxbuild.core.environment import NODE

NODE_MODULES = "node_modules"
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}


def this_platform() -> tuple[str, str]:
    """Return Node's names of this system and its architecture, such as ("linux", "x64")."""
    machine = os.uname().machine.lower()
    return sys.platform, _ARCHITECTURES.get(machine, machine)


def packages_listed(text: str) -> dict[str, str]:
    """Return what keys have of a list: name -> `name version integrity`; the integrity is a hash of all content.

    A package that is in another's node_modules has that in its name.

    Args:
        text: Of package-lock.json, version 2 or 3.

    Raises:
        ValueError: It is no such list, or leaves a package's content open.
    """
    found = {}
    for path, about in _entries(text).items():
        name = path.removeprefix(f"{NODE_MODULES}/")
        if path and not path.startswith(f"{NODE_MODULES}/"):
            raise ValueError(f"it has '{path}', which is in no {NODE_MODULES}")
        if path:
            own = name.rpartition(f"/{NODE_MODULES}/")[2]
            try:
                found[name] = f"{own} {about['version']} {about['integrity']}"
            except KeyError as error:
                raise ValueError(f"it gives '{name}' no {error.args[0]}") from None
    return dict(sorted(found.items()))


def asked_of(text: str) -> list[str]:
    """Return `name version` of the packages that a list was made for; nothing of what is no list of npm's."""
    try:
        entries = _entries(text)
        asked = entries.get("", {}).get("dependencies", {})
        return [f"{name} {entries[f'{NODE_MODULES}/{name}']['version']}" for name in asked]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def manifest_of(text: str) -> str:
    """Return the package.json that belongs to a list."""
    entries = _entries(text)
    asked = entries.get("", {}).get("dependencies", {})
    return json.dumps({"private": True, "dependencies": asked}) + "\n"


def _entries(text: str) -> Mapping[str, Any]:
    entries = json.loads(text).get("packages")
    if not isinstance(entries, dict):
        raise ValueError("it has no `packages`")  # noqa: TRY004 - of what was read
    return entries


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
