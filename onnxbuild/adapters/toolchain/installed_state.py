"""Digests of installed software other than single packages: all packages, entry points, copied modules."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.accelerator import driver_version, gpu_models
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.import_path import SearchFolder
from onnxbuild.adapters.toolchain.importable import Importable, entries_of
from onnxbuild.adapters.toolchain.records import tree_digest
from onnxbuild.core.host_variables import PASSED_ON


def packages_digest(distributions: Distributions) -> str:
    """Digest the names and versions of all packages, as `packages COUNT sha256`."""
    return _digest("packages", (f"{n} {distributions.version(n)}" for n in distributions.names()))


def entry_points_digest(group: str, distributions: Distributions, stats: StatCache) -> str:
    """Digest all entry points of a group, as `entry-points COUNT sha256`."""

    def of_group(path: str) -> str | None:
        import configparser  # slow to import, and what it finds is cached

        found = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        setattr(found, "optionxform", str)  # noqa: B010 - names as they are; mypy knows a method
        try:
            found.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            return None
        items = found.items(group) if found.has_section(group) else ()
        return "\n".join(f"{name} = {value}" for name, value in items)

    lines = []
    for name, info in distributions.metadata_folders().items():
        text = stats.digest(os.path.join(info, "entry_points.txt"), f"{group} of ", of_group)
        version = distributions.version(name)
        lines += [f"{name} {version} {line}" for line in (text or "").splitlines()]
    return _digest("entry-points", lines)


def copied_digest(top: str, distributions: Distributions, stats: StatCache) -> str | None:
    """A module or package in a site folder that no distribution lists, by its content."""
    for site in distributions.folders:
        sha = tree_digest([top], site, stats)
        if sha is not None:
            return f"{top.partition('.')[0]} copied {sha}"
    return None


def parts_digest(folder: str, distributions: Distributions) -> str:
    """The modules in a namespace package's folders, of all site folders."""
    places = [os.path.join(site, folder) for site in distributions.folders]
    return _digest("parts", (entry for place in places for entry in entries_of(place)))


class PluginCode(Protocol):
    """Parts of a plug-in that its digest is made of: see expansion/plugin.py."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """Its version."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files of its code, absolute."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that these were found in."""


def plugin_digest(name: str, plugins: Iterable[PluginCode], stats: StatCache) -> str | None:
    """Digest the files of a plug-in's code, as `NAME VERSION sha256`; None if it is not there."""
    plugin = next((each for each in plugins if each.name == name), None)
    if plugin is None:
        return None
    for folder in plugin.folders:
        stats.look(folder)
    base = os.path.commonpath([os.path.dirname(path) for path in plugin.files])
    lines = [f"{os.path.relpath(path, base)}\t{stats.digest(path)}" for path in plugin.files]
    text = "\n".join(sorted(lines)).encode("utf-8", "surrogateescape")
    return f"{plugin.name} {plugin.version} {hashlib.sha256(text).hexdigest()}"


def names_digest(folders: Iterable[str]) -> str:
    """sha256 of the names in all folders of installed packages."""
    found = sorted(name for folder in folders for name in _names_in(folder))
    return hashlib.sha256("\0".join(found).encode("utf-8", "surrogateescape")).hexdigest()


def devices_digest(drivers: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The accelerators that a program finds: `DEVICES VISIBLE sha256`, no word of it with spaces."""
    visible = {name: environment[name] for name in PASSED_ON if name in environment}
    text = json.dumps([dict(drivers), visible, gpu_models(), driver_version()], sort_keys=True)
    names = drivers.get("devices", "").replace(" ", ",") or "none"
    shown = ",".join(f"{name}={value}" for name, value in sorted(visible.items())) or "all"
    return f"{names} {shown.replace(' ', '_')} {hashlib.sha256(text.encode()).hexdigest()}"


def installed_entries(names: Iterable[str], sites: Sequence[str]) -> tuple[str, ...]:
    """Return the entries of site folders that could be some modules, sorted.

    Entries of other folders than the first begin with their number: `site 2/numpy`.

    Args:
        names: Of modules; `a.b` is looked for in the folder `a`.
    """
    by_parent: dict[str, set[str]] = {}
    for name in names:
        parent, _, last = name.rpartition(".")
        by_parent.setdefault(parent.replace(".", "/"), set()).add(last)
    return tuple(
        sorted(
            os.path.join("" if number == 1 else f"site {number}", parent, entry)
            for parent, wanted in by_parent.items()
            for number, site in enumerate(sites, start=1)
            for entry in entries_of(os.path.join(site, parent))
            if entry.partition(".")[0] in wanted
        )
    )


def entries_on_path(folders: Iterable[SearchFolder]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what could be imported from each folder that the interpreter starts with: name, entries.

    Args:
        folders: From `ImportPath.folders`.
    """
    return tuple((each.name, each.modules or entries_of(each.folder)) for each in folders)


def found_on_path(
    names: Iterable[str], entries: Iterable[tuple[str, Sequence[str]]]
) -> tuple[str, ...]:
    """Return the entries of those folders that could be some top-level modules, sorted.

    The names of the entries contain the order of the folders.

    Args:
        entries: From `entries_on_path`.
    """
    wanted = set(names)
    return tuple(
        sorted(
            f"{name}/{entry}" for name, each in entries for entry in Importable(each).of(wanted)
        )
    )


def _digest(label: str, lines: Iterable[str]) -> str:
    found = sorted(lines)
    return f"{label} {len(found)} {hashlib.sha256(chr(10).join(found).encode()).hexdigest()}"


def _names_in(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name != "__pycache__"]
    except OSError:
        return []
