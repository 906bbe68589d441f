"""Installed distributions: where they lie, what files they own, and a digest of each."""

from __future__ import annotations

import csv
import glob
import hashlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from onnxbuild.adapters.statcache import ABSENT, StatCache

# Distributions that hold the same import package under different names; the first found counts.
_EQUIVALENTS = {
    "onnxruntime": (
        "onnxruntime",
        "onnxruntime-gpu",
        "onnxruntime-directml",
        "onnxruntime-openvino",
        "onnxruntime-qnn",
        "onnxruntime-migraphx",
        "onnxruntime-cann",
        "onnxruntime-training",
    )
}

_REQUIRES = re.compile(r"Requires-Dist:\s*([A-Za-z0-9][\w.-]*)")
_ORIGIN = "direct_url.json"
_NOT_CONTENT = ("RECORD", "INSTALLER", "REQUESTED", _ORIGIN, "RECORD.jws", "RECORD.p7s")


def normalized(name: str) -> str:
    """A distribution's name in its one spelling (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def site_folders() -> tuple[str, ...]:
    """The folders that installed distributions lie in."""
    paths = sysconfig.get_paths()
    found = [paths["purelib"], paths["platlib"]]
    found += [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    return tuple(dict.fromkeys(os.path.realpath(path) for path in found))


def editable_folders(sites: Iterable[str]) -> tuple[str, ...]:
    """Projects that are installed in place, as their direct_url.json says (PEP 610).

    Not all of them are on the import path: some are found by a hook.

    Args:
        sites: Folders that installed distributions lie in.
    """
    found = []
    for site in sites:
        for record in sorted(glob.glob(os.path.join(glob.escape(site), "*.dist-info", _ORIGIN))):
            try:
                with open(record, encoding="utf-8") as file:
                    origin = json.load(file)
                url, editable = origin["url"], origin.get("dir_info", {}).get("editable")
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
            if editable and str(url).startswith("file://"):
                found.append(unquote(urlsplit(str(url)).path))
    return tuple(found)


class Distributions:
    """What is installed in this interpreter's site folders.

    Args:
        stats: Caches digests of RECORD files, and remembers the folders looked at.
        folders: Site folders; given by tests, found otherwise.
    """

    def __init__(self, stats: StatCache, folders: tuple[str, ...] | None = None) -> None:
        self._stats = stats
        self.folders = site_folders() if folders is None else folders
        self._infos: dict[str, tuple[str, str]] | None = None
        self._owners: dict[str, str] | None = None

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
                    path = os.path.join(folder, entry)
                    self._infos.setdefault(normalized(name), (version, path))
        return self._infos

    def real_name(self, name: str) -> str:
        """The installed distribution that stands for `name`."""
        infos = self._scan()
        for each in _EQUIVALENTS.get(name, ()):
            if each in infos:
                return each
        return normalized(name)

    def names(self) -> tuple[str, ...]:
        """All that is installed, normalized."""
        return tuple(self._scan())

    def needs(self, name: str) -> tuple[str, ...]:
        """What an installed distribution says that it needs, extras and markers aside, normalized."""
        info = self._scan().get(name)
        text = None
        if info is not None:
            record = os.path.join(info[1], "METADATA")
            text = self._stats.digest(record, "needs ", _needs)
        return tuple((text or "").split())

    def stands_for(self, name: str) -> tuple[str, ...]:
        """All installed distributions that hold the import package `name`."""
        infos = self._scan()
        return tuple(each for each in _EQUIVALENTS.get(name, (name,)) if each in infos)

    def version(self, name: str) -> str | None:
        """The installed version; None if it is not installed."""
        info = self._scan().get(self.real_name(name))
        return info[0] if info else None

    def digest(self, name: str) -> str | None:
        """`name version sha256` of what is installed; None if it is not installed.

        RECORD lists a hash of every file; rows that an installation elsewhere would write
        differently (scripts with an interpreter's path in them, bytecode) don't count. Without a
        RECORD the version must do.
        """
        real = self.real_name(name)
        info = self._scan().get(real)
        if info is None:
            return None
        version, folder = info
        record = os.path.join(folder, "RECORD")
        sha = self._stats.digest(record, "record ", _record_digest)
        return f"{real} {version} {sha or 'no-record'}"

    def editables(self) -> dict[str, str]:
        """Normalized name -> folder of each distribution that is installed as editable (PEP 610)."""
        found = {}
        for name, (_, folder) in self._scan().items():
            path = os.path.join(folder, "direct_url.json")
            if self._stats.look(path) == ABSENT:
                continue
            try:
                with open(path, encoding="utf-8") as file:
                    told = json.load(file)
                editable = bool(told.get("dir_info", {}).get("editable"))
                url = urlsplit(told["url"])
            except (OSError, ValueError, KeyError, AttributeError):
                continue  # damaged: its paths are recorded as they are
            if editable and url.scheme == "file":
                found[name] = os.path.abspath(unquote(url.path))
        return found

    def owners_of(self, path: str) -> tuple[str, ...]:
        """The distributions that an installed file is of."""
        if self._owners is None:
            self._owners = self.owners()
        for site in self.folders:
            if path.startswith(f"{site}/"):
                owner = self._owners.get(path[len(site) + 1 :].split("/", 1)[0])
                return () if owner is None else (owner,)
        return ("python",)

    def owners(self) -> dict[str, str]:
        """Top-level name below a site folder -> normalized name of the distribution that owns it."""
        owners: dict[str, str] = {}
        for name, (_, folder) in self._scan().items():
            for row in _rows(os.path.join(folder, "RECORD")):
                top = row[0].split("/", 1)[0]
                if not top.startswith("..") and not top.endswith((".dist-info", ".egg-info")):
                    owners.setdefault(top, name)
        return owners


def _needs(metadata: str) -> str | None:
    """The normalized names of `Requires-Dist`, between spaces; those of extras don't count."""
    names = set()
    try:
        with open(metadata, encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break
                found = _REQUIRES.match(line)
                if found and "extra ==" not in line:
                    names.add(normalized(found[1]))
    except OSError:
        return None
    return " ".join(sorted(names))


def _rows(record: str) -> list[list[str]]:
    try:
        with open(record, encoding="utf-8", newline="") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _record_digest(record: str) -> str | None:
    kept = []
    for row in _rows(record):
        path = row[0]
        in_info = ".dist-info/" in path
        if path.startswith("..") or path.endswith(".pyc") or os.path.isabs(path):
            continue
        if in_info and path.rsplit("/", 1)[1] in _NOT_CONTENT:
            continue
        kept.append("\t".join(row))
    return hashlib.sha256("\n".join(sorted(kept)).encode()).hexdigest() if kept else None
