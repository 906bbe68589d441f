"""Find installed distributions, the files that they own, and a digest of each."""

import glob
import hashlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from onnxbuild.adapters.disk.statcache import ABSENT, StatCache
from onnxbuild.adapters.toolchain.import_variables import shell_python_path
from onnxbuild.adapters.toolchain.records import (
    ORIGIN,
    Tops,
    metadata_digest,
    needed_names,
    normalized,
    record_digest,
    rows,
    top_names,
    tree_digest,
    unrecorded_tops,
)

RUNTIME = "onnxruntime"

# Distributions that hold the same import package under different names; those of ONNX Runtime are their providers'.
_EQUIVALENTS = {
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-intel"),
    "xgboost": ("xgboost", "xgboost-cpu"),
}

_PYTHON_TAG = re.compile(r"-py\d[\d.]*$")  # `six-1.16.0-py3.11.egg-info`


def site_folders() -> tuple[str, ...]:
    """Return the folders of installed distributions, in the order in which they are searched.

    A folder of PYTHONPATH is one if `pip install --target` has put distributions there.
    """
    paths = sysconfig.get_paths()
    listed = frozenset(shell_python_path(os.environ))
    found = [
        path
        for path in sys.path
        if path.endswith(("site-packages", "dist-packages"))
        or (path in listed and glob.glob(os.path.join(glob.escape(path), "*.dist-info")))
    ]
    found += [paths["purelib"], paths["platlib"]]
    return tuple(dict.fromkeys(os.path.realpath(path) for path in found))


def editable_folders(sites: Iterable[str]) -> tuple[str, ...]:
    """Projects that are installed in place, as their direct_url.json says (PEP 610).

    Not all of them are on the import path: some are found by a hook.

    Args:
        sites: Folders that installed distributions are in.
    """
    return tuple(
        folder
        for site in sites
        for record in sorted(glob.glob(os.path.join(glob.escape(site), "*.dist-info", ORIGIN)))
        if (folder := editable_folder(os.path.dirname(record)))
    )


def editable_folder(info: str) -> str:
    """Return the folder of the project that is installed in place; empty if it is installed otherwise."""
    try:
        with open(os.path.join(info, ORIGIN), encoding="utf-8") as file:
            origin = json.load(file)
        url, editable = str(origin["url"]), origin.get("dir_info", {}).get("editable")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return unquote(urlsplit(url).path) if editable and url.startswith("file://") else ""


def _equivalents(name: str) -> tuple[str, ...]:
    """The distributions that hold the import package `name`, if there are several."""
    if name != RUNTIME:
        return _EQUIVALENTS.get(name, ())
    from onnxbuild.providers import all_providers

    brought = (each.distribution for each in all_providers() if each.distribution)
    return tuple(dict.fromkeys((RUNTIME, *brought, f"{RUNTIME}-training")))


class Distributions:
    """Installed distributions of this interpreter's site folders.

    Args:
        stats: Caches digests of RECORD files, and remembers the folders looked at.
        folders: Site folders; given by tests, found otherwise.
    """

    def __init__(self, stats: StatCache, folders: tuple[str, ...] | None = None) -> None:
        self._stats = stats
        self.folders = site_folders() if folders is None else folders
        self._infos: dict[str, tuple[str, str]] | None = None
        self._editables: dict[str, str] | None = None
        self._found_tops: Tops | None = None
        self._listed: dict[str, dict[str, str]] = {}

    def _scan(self) -> dict[str, tuple[str, str]]:
        """Normalized name -> (version, metadata folder)."""
        if self._infos is None:
            self._infos = {}
            for folder in self.folders:
                self._stats.look(folder)
                try:
                    entries = sorted(os.listdir(folder))
                except OSError:
                    continue
                for entry in entries:
                    stem, dot, kind = entry.rpartition(".")
                    if not dot or kind not in {"dist-info", "egg-info"}:
                        continue
                    name, _, version = stem.partition("-")
                    version = _PYTHON_TAG.sub("", version)
                    path = os.path.join(folder, entry)
                    self._infos.setdefault(normalized(name), (version, path))
        return self._infos

    def real_name(self, name: str) -> str:
        """The installed distribution that stands for `name`."""
        infos = self._scan()
        for each in _equivalents(name):
            if each in infos:
                return each
        return normalized(name)

    def metadata_folders(self) -> dict[str, str]:
        """Normalized name -> metadata folder of all that is installed."""
        return {name: folder for name, (_, folder) in self._scan().items()}

    def names(self) -> tuple[str, ...]:
        """Return the normalized names of all installed distributions."""
        return tuple(self._scan())

    def needs(self, name: str) -> tuple[str, ...]:
        """Return what an installed distribution says that it needs, extras and markers aside, normalized."""
        info = self._scan().get(name)
        text = None
        if info is not None:
            record = os.path.join(info[1], "METADATA")
            text = self._stats.digest(record, "needs ", needed_names)
        return tuple((text or "").split())

    def stands_for(self, name: str) -> tuple[str, ...]:
        """Return the installed distributions that hold the import package `name`."""
        infos = self._scan()
        return tuple(each for each in _equivalents(name) or (name,) if each in infos)

    def version(self, name: str) -> str | None:
        """The installed version; None if it is not installed."""
        info = self._scan().get(self.real_name(name))
        return info[0] if info else None

    def digest(self, name: str) -> str | None:
        """`name version sha256` of what is installed; None if it is not installed.

        RECORD lists a hash of every file; see `records.record_digest`. A file that several
        distributions list with different hashes counts by its content: no RECORD says which was
        installed last. If several stand for `name`, all of them count. Without a RECORD the files
        count. Of an editable installation only the metadata counts; its sources are observed one
        by one.
        """
        there = self.stands_for(name)
        if len(there) > 1:
            each = "\n".join(self._own_digest(one) for one in there)
            sha = hashlib.sha256(each.encode()).hexdigest()
            return f"{there[0]} {self._scan()[there[0]][0]} {sha}"
        real = self.real_name(name)
        return self._own_digest(real) if real in self._scan() else None

    def _own_digest(self, name: str) -> str:
        version, folder = self._scan()[name]
        record = os.path.join(folder, "RECORD")
        if name in self.editables():
            sha = self._stats.digest(record, "metadata ", metadata_digest)
        else:
            sha = self._stats.digest(record, "record ", record_digest)
            if sha is None:
                tops = (*unrecorded_tops(folder, name), os.path.basename(folder))
                sha = tree_digest(tops, os.path.dirname(folder), self._stats)
            contested = self._contested(name)
            if contested:
                text = "\n".join([sha or "", *contested])
                sha = hashlib.sha256(text.encode()).hexdigest()
        return f"{name} {version} {sha or 'no-record'}"

    def _contested(self, name: str) -> list[str]:
        """Each file that another distribution lists with another hash: its path and its digest."""
        tops = self._tops()
        others = {
            other
            for top in tops.of[name]
            if len(tops.owners[top]) > 1
            for other in tops.owners[top]
        }
        own = self._hashes(name) if others else {}
        differ = {
            path
            for other in others - {name}
            for path, sha in self._hashes(other).items()
            if path in own and own[path] != sha
        }
        site = os.path.dirname(self._scan()[name][1])
        return [f"{p}\t{self._stats.digest(os.path.join(site, p))}" for p in sorted(differ)]

    def _hashes(self, name: str) -> dict[str, str]:
        """Path below the site folder -> hash, as a distribution's RECORD has them."""
        if name not in self._listed:
            record = os.path.join(self._scan()[name][1], "RECORD")
            self._listed[name] = {
                row[0]: row[1] if len(row) > 1 else ""
                for row in rows(record)
                if not row[0].endswith(".pyc")
            }
        return self._listed[name]

    def editables(self) -> dict[str, str]:
        """Normalized name -> folder of each distribution that is installed as editable (PEP 610)."""
        if self._editables is not None:
            return self._editables
        found = {}
        for name, (_, folder) in self._scan().items():
            path = os.path.join(folder, ORIGIN)
            if self._stats.look(path) == ABSENT:
                continue
            try:
                with open(path, encoding="utf-8") as file:
                    direct_url = json.load(file)
                editable = bool(direct_url.get("dir_info", {}).get("editable"))
                url = urlsplit(direct_url["url"])
            except (OSError, ValueError, KeyError, AttributeError):
                continue  # damaged: its paths are recorded as they are
            if editable and url.scheme == "file":
                found[name] = os.path.abspath(unquote(url.path))
        self._editables = found
        return found

    def owners(self) -> dict[str, tuple[str, ...]]:
        """Top-level name below a site folder -> the distributions that hold files there."""
        return self._tops().owners

    def owners_of(self, path: str) -> tuple[str, ...]:
        """Return the distributions that list a file; if none does, those that share its top-level name.

        Args:
            path: Absolute, links resolved.
        """
        for site in self.folders:
            if not path.startswith(f"{site}/"):
                continue
            below = path[len(site) + 1 :]
            top = below.partition("/")[0]
            tops = self._tops()
            found = tops.owners.get(top) or tops.metadata.get(top, ())
            if len(found) > 1:
                return tuple(name for name in found if below in self._hashes(name)) or found
            return found
        return ()

    def entry_of(self, path: str) -> str:
        """Return the entry of a site folder that a file is, or is below; empty if there is none.

        Args:
            path: Absolute, links resolved.
        """
        for site in self.folders:
            if path.startswith(f"{site}/"):
                return path[len(site) + 1 :].partition("/")[0]
        return ""

    def _tops(self) -> Tops:
        if self._found_tops is None:
            found = Tops({}, {}, {})
            for name, (_, folder) in self._scan().items():
                record = os.path.join(folder, "RECORD")
                text = self._stats.digest(record, "tops ", top_names)
                names = unrecorded_tops(folder, name) if text is None else text.splitlines()
                found.of[name] = tuple(names)
                found.metadata[os.path.basename(folder)] = (name,)
                for top in names:
                    found.owners[top] = (*found.owners.get(top, ()), name)
            self._found_tops = found
        return self._found_tops
