"""Lists of npm's packages (package-lock.json): what keys have of them, and what they were made for."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

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
