"""A project's own plug-ins: `plugins` in the table `tool.onnxbuild` of its pyproject.toml."""

import os
import re
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import PluginError
from onnxbuild.project_folder import PYPROJECT, tool_settings

_KEY = re.compile(rb"plugins[\"']?\s*=")
_FIX = 'write `plugins = ["tools/my_steps.py"]` below `[tool.onnxbuild]`'


def declared_files(project: Path) -> tuple[str, ...]:
    """Return the files that a project names as plug-ins, relative to its root, with slashes.

    Raises:
        PluginError: The file can't be read, or says something else than a list of files.
    """
    path = project / PYPROJECT
    try:
        content = path.read_bytes()
    except OSError:
        return ()
    if b"onnxbuild" not in content or not _KEY.search(content):
        return ()  # reading TOML takes longer than all else here
    table = _table(content, str(path))
    names = table.get("plugins", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise PluginError(
            f"`plugins` is {names!r}; expected a list of Python files", where=str(path), fix=_FIX
        )
    for name in names:
        fault = _fault_of(project, name)
        if fault:
            raise PluginError(f"`plugins` names '{name}', {fault}", where=str(path), fix=_FIX)
    found = [Path(os.path.normpath(name)).as_posix() for name in names]
    for name in found:
        if found.count(name) > 1:
            raise PluginError(
                f"`plugins` names '{name}' twice", where=str(path), fix="name each file once"
            )
    return tuple(found)


def _table(content: bytes, path: str) -> dict[str, Any]:
    try:
        return tool_settings(content, "plugins")
    except ValueError as error:  # UnicodeDecodeError and TOMLDecodeError are such
        raise PluginError(f"it is no TOML: {error}", where=path, fix="mend the line") from None


def _fault_of(project: Path, name: str) -> str:
    """Return what is wrong with the name of a file, after a comma; empty if nothing is."""
    if os.path.isabs(name) or not name.endswith(".py"):
        return "which is no Python file with a path relative to the project's root"
    file = Path(os.path.normpath(project / name))
    if not file.is_relative_to(project):
        return "which is outside the project"
    return "" if file.is_file() else "and there is no such file"
