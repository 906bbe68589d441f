"""Bring the plug-ins that are there into the catalog: those installed, and those of one project.

It is asked for at each door that takes a recipe, so that what is installed, edited or removed while a
process lives counts; what is as it was is not imported again.
"""

import os
from collections.abc import Callable, Collection, Iterable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from threading import Lock

from onnxbuild import catalog
from onnxbuild.adapters.disk.statcache import identity
from onnxbuild.adapters.toolchain.distributions import site_folders
from onnxbuild.adapters.toolchain.import_variables import shell_python_path
from onnxbuild.core.errors import PluginError
from onnxbuild.expansion.plugin import Plugin
from onnxbuild.plugins.check import checked
from onnxbuild.plugins.declared import declared_files
from onnxbuild.plugins.installed import code_of, installed
from onnxbuild.plugins.load import forget, load_file, load_installed
from onnxbuild.project_folder import PYPROJECT
from onnxbuild.providers import PROVIDERS

_KNOWN: dict[str, tuple[tuple[str, ...], Plugin]] = {}
"""Plug-ins that this process has loaded: metadata folder, or file -> (identities of its files, the plug-in)."""

_LOOKED_AT: ContextVar[tuple[str, ...]] = ContextVar("looked_at", default=())
"""Paths that decided which plug-ins this thread or task uses: files and folders."""

_IMPORTS = Lock()
"""One thread at a time imports plug-ins: their modules and the import path are the process's."""


def bring_plugins(
    project: Path | None = None, *, names: Collection[str] | None = None
) -> tuple[Plugin, ...]:
    """Have the catalog hold the plug-ins that are there now, but the faulty ones; return all of them.

    Args:
        project: The root of the project whose own files count; None for none.
        names: Distributions to import; None for all.
    """
    sites = site_folders()
    looked_at = [*sites, *shell_python_path(os.environ)]
    with _IMPORTS:
        found = [
            _load(each.info, partial(load_installed, each), code_of(each)[0])
            for each in installed(sites)
            if names is None or each.name in names
        ]
        if project is not None:
            looked_at.append(str(project / PYPROJECT))
            found += _own(project)
    plugins = checked(found, catalog.FEATURES, PROVIDERS)
    _LOOKED_AT.set(
        (*looked_at, *(path for each in plugins for path in (*each.files, *each.folders)))
    )
    if plugins != catalog.plugins():
        catalog.use_plugins(plugins)
    return plugins


def refuse_faulty(plugins: Iterable[Plugin]) -> None:
    """Raise the first fault: without a plug-in that is there, a recipe might mean something else.

    Raises:
        PluginError: A plug-in is faulty.
    """
    for each in plugins:
        if each.fault is not None:
            raise each.fault


def plugin_files() -> tuple[str, ...]:
    """Return the files and folders that decided which plug-ins there are, and what they do, absolute."""
    return _LOOKED_AT.get()


def _own(project: Path) -> list[Plugin]:
    """The project's own plug-ins; one faulty one where the list can't be read."""
    try:
        names = declared_files(project)
    except PluginError as fault:
        return [Plugin(PYPROJECT, "", str(project / PYPROJECT), fault=fault)]
    return [_load(str(project / name), partial(load_file, project, name)) for name in names]


def _load(key: str, load: Callable[[], Plugin], files: tuple[str, ...] = ()) -> Plugin:
    """The plug-in as it was loaded before, if all its files are as they were; else anew.

    Args:
        files: Those of its code now; none where that is known by importing it.
    """
    known = _KNOWN.get(key)
    if known is not None:
        stamp, plugin = known
        if (files or plugin.files) == plugin.files and stamp == tuple(map(identity, plugin.files)):
            return plugin
        forget(plugin.files)
    plugin = load()
    _KNOWN[key] = (tuple(map(identity, plugin.files)), plugin)
    return plugin
