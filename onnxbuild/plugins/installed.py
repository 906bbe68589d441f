"""Find the distributions that bring plug-ins, and the files of their code; nothing is imported.

`importlib.metadata` takes longer to import than all of this takes.
"""

import csv
import importlib.util
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onnxbuild.adapters.toolchain.distributions import editable_folder
from onnxbuild.adapters.toolchain.records import ORIGIN, normalized

GROUP = "onnxbuild.features"

_ENTRY_POINTS = "entry_points.txt"
_NOT_CODE = ("INSTALLER", "REQUESTED", ORIGIN)
_PASSED_OVER = ("__pycache__", "build", "node_modules", "site-packages")
_NO_SOURCES = (("pyvenv.cfg",), ("cas", "ac"), ("release.json", "SHA256SUMS"))
"""Marks of virtual environments, stores and releases: modules in them are made, not written."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A distribution with entry points of GROUP.

    Attributes:
        name: Normalized.
        version: As its metadata folder is named.
        info: Its metadata folder, absolute.
        entries: (name, `module:attribute`) of each entry point; empty if they can't be read.
        origin: The project's folder, if it is installed as editable; else empty.
    """

    name: str
    version: str
    info: str
    entries: tuple[tuple[str, str], ...]
    origin: str

    @property
    def site(self) -> str:
        """The folder that it is installed in."""
        return os.path.dirname(self.info)

    @property
    def modules(self) -> tuple[str, ...]:
        """Top-level names of the modules that its entry points name."""
        found = (value.partition(":")[0].partition(".")[0].strip() for _, value in self.entries)
        return tuple(dict.fromkeys(found))


def installed(sites: Iterable[str]) -> list[Installed]:
    """Return the distributions that bring plug-ins, by name; of two of one name, the first found.

    Args:
        sites: Folders of installed distributions, in the order in which they are searched.
    """
    found: dict[str, Installed] = {}
    for site in sites:
        try:
            entries = sorted(os.listdir(site))
        except OSError:
            continue
        for entry in entries:
            stem, _, kind = entry.rpartition(".")
            if kind not in ("dist-info", "egg-info"):
                continue
            info = os.path.join(site, entry)
            declared = _declared(os.path.join(info, _ENTRY_POINTS))
            if declared is not None:
                name, _, version = stem.partition("-")
                each = Installed(
                    normalized(name), version or "0", info, declared, editable_folder(info)
                )
                found.setdefault(each.name, each)
    return [found[name] for name in sorted(found)]


def _declared(path: str) -> tuple[tuple[str, str], ...] | None:
    """The entry points of GROUP; None if the file has none."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return None
    if GROUP.encode() not in content:
        return None
    import configparser  # slow to import, and few have plug-ins

    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    setattr(parser, "optionxform", str)  # noqa: B010 - names as they are; mypy knows a method
    try:
        parser.read_string(content.decode("utf-8"))
    except (configparser.Error, UnicodeDecodeError):
        return ()
    return tuple(parser.items(GROUP)) if parser.has_section(GROUP) else None


def code_of(found: Installed) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files of a distribution's code, and the folders in which a new file counts, absolute.

    They are those that its RECORD lists. Of an editable installation, and of one without a RECORD,
    they are all files of the packages that its entry points name; of an editable one all other `.py`
    files of its project, too, since any of them may be imported.
    """
    files = set(_metadata(found.info))
    if not found.origin:
        files |= _recorded(found)
    folders: set[str] = set()
    if found.origin or len(files) == len(_metadata(found.info)):
        for top in _tops(found):
            _add_tree(top, files, folders, suffix="")
    if found.origin:
        _add_tree(found.origin, files, folders, suffix=".py")
    return tuple(sorted(files)), tuple(sorted(folders))


def _metadata(info: str) -> list[str]:
    names = ("METADATA", "PKG-INFO", _ENTRY_POINTS)
    return [path for name in names if os.path.isfile(path := os.path.join(info, name))]


def _recorded(found: Installed) -> set[str]:
    """The files that RECORD lists below the site folder, but bytecode and notes of the installer."""
    try:
        with open(os.path.join(found.info, "RECORD"), encoding="utf-8", newline="") as file:
            listed = [row[0] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        return set()
    return {
        os.path.join(found.site, path)
        for path in listed
        if not (path.startswith("..") or os.path.isabs(path) or path.endswith(".pyc"))
        and os.path.basename(path) not in _NOT_CODE
    }


def _tops(found: Installed) -> Iterator[str]:
    """The files and folders of its top-level modules; nothing is imported to find them."""
    for name in found.modules:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            continue
        if spec is not None and spec.submodule_search_locations:
            yield from spec.submodule_search_locations
        elif spec is not None and spec.origin and spec.has_location:
            yield spec.origin


def _add_tree(top: str, files: set[str], folders: set[str], *, suffix: str) -> None:
    """Add the files below a folder, with the folders that hold them; or the one file."""
    if os.path.isfile(top):
        files.add(top)
        return
    for base, below, names in os.walk(top):
        below[:] = [
            name
            for name in below
            if not name.startswith(".")
            and name not in _PASSED_OVER
            and not any(
                all(os.path.exists(os.path.join(base, name, mark)) for mark in marks)
                for marks in _NO_SOURCES
            )
        ]
        kept = [n for n in names if n.endswith(suffix) and not n.endswith(".pyc")]
        files.update(os.path.join(base, name) for name in kept)
        if kept:
            folders.add(base)
