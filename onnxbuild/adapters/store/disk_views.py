"""The folders below out/: copies of artifacts that a person may open, edit or delete."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import (
    is_full,
    make_folder,
    share,
    store_error,
    write_atomically,
)
from onnxbuild.adapters.disk.linux_files import clone_or_copy
from onnxbuild.adapters.disk.locks import wait_lock
from onnxbuild.adapters.disk.plain_files import check_no_links, is_real_folder, parse_json
from onnxbuild.adapters.disk.statcache import ABSENT, StatCache
from onnxbuild.adapters.store.folder_replacement import replace_folder, tidy
from onnxbuild.adapters.store.housekeeping import tree_bytes
from onnxbuild.adapters.store.laid_files import is_file_inside
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest, check_sha256
from onnxbuild.core.errors import StoreError
from onnxbuild.core.file_names import check_file_names
from onnxbuild.core.graph import Deliverable
from onnxbuild.core.ports import Store
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.regular_files import open_regular, read_regular

_STATES = ".laid"  # below out/
_STAGING = ".staging"


class DiskViews:
    """Views below out/ in a store's folder.

    Args:
        store: Where the artifacts are.
        stats: Remembers the identity of every file laid.
    """

    def __init__(self, root: Path, store: Store, stats: StatCache) -> None:
        self._root = root
        self._store = store
        self._stats = stats
        self._replaced: dict[tuple[str, str], dict[Path, tuple[str, str]]] = {}

    def lay(
        self, view: Deliverable, artifacts: Mapping[tuple[str, str], Artifact]
    ) -> tuple[str, ...]:
        """Make out/RECIPE/VARIANT hold its artifacts' files; returns what had to be put back.

        The folder changes all at once: whoever opens it has the old build or the new one. Files
        that an earlier build laid there and this one does not are not in the new folder; files
        that nobody laid are. A folder that is right is not touched.

        Raises:
            StoreError: The folder can't be written, or a blob is damaged; it is as it was.
        """
        folder = self._root / "out" / view.recipe / view.name
        places = view_places(self._root, view.recipe, view.name)
        wanted = _files(view, artifacts)
        now = {name: part.digest.sha256 for name, part in wanted.items()}
        check_no_links(self._root, folder)
        check_no_links(self._root, places.staging)
        lock = wait_lock(places.lock)
        try:
            remarks = []
            if tidy(folder, places.staging, self._root / "quarantine"):
                remarks.append(f"a run was stopped while it replaced {folder}; that is finished")
            laid = laid_files(places.state)
            missing = [
                name for name in wanted if not self._holds(folder / name, wanted[name].digest)
            ]
            for name in missing:
                if laid.get(name) == now[name]:
                    gone = self._stats.look(str(folder / name)) == ABSENT
                    remarks.append(
                        f"{folder / name} was {'deleted' if gone else 'changed'}; put back"
                    )
            surplus = [name for name in laid.keys() - now.keys() if is_file_inside(folder, name)]
            if missing or surplus:
                noted = self._replace(folder, places.staging, wanted, frozenset(missing), laid)
                self._replaced[view.recipe, view.name] = noted
            if now != laid:
                content = json.dumps(now, sort_keys=True, indent=1).encode()
                write_atomically(places.state, content, self._root / "tmp")
            return tuple(remarks)
        except OSError as error:
            raise store_error(error, error.filename2 or error.filename or folder) from error
        finally:
            lock.release()

    def lay_page(self, recipe: str, name: str, file: str, content: bytes) -> Path:
        """Put a page that no step made into out/RECIPE/NAME, until a build lays that folder; return its path.

        Raises:
            StoreError: The folder can't be written.
        """
        folder = self._root / "out" / recipe / name
        places = view_places(self._root, recipe, name)
        check_no_links(self._root, folder)
        check_no_links(self._root, places.staging)
        lock = wait_lock(places.lock)
        try:
            tidy(folder, places.staging, self._root / "quarantine")
            _check_free(folder, file)
            write_atomically(folder / file, content, self._root / "tmp")
            laid = {**laid_files(places.state), file: hashlib.sha256(content).hexdigest()}
            state = json.dumps(laid, sort_keys=True, indent=1).encode()
            write_atomically(places.state, state, self._root / "tmp")
            return folder / file
        except OSError as error:
            raise store_error(error, error.filename2 or error.filename or folder) from error
        finally:
            lock.release()

    def _replace(
        self,
        folder: Path,
        staging: Path,
        wanted: Mapping[str, _Part],
        missing: Collection[str],
        laid: Collection[str],
    ) -> dict[Path, tuple[str, str]]:
        """Put a folder with all that is wanted in the place of one in which some is missing; return (digest, identity) of what is as it was laid."""
        for name in missing:
            _check_free(folder, name)
        kept: dict[str, str] = {}

        def fill(tree: Path) -> None:
            for name, part in wanted.items():
                target = tree / name
                make_folder(target.parent)
                if name not in missing and _link(folder / name, target):
                    kept[name] = _content_identity(target)
                else:
                    self._copy(part, target)

        replace_folder(folder, staging, fill, own={*wanted, *laid})
        noted = {}
        for name, part in wanted.items():
            path, found = folder / name, _content_identity(folder / name)
            if kept.get(name, found) == found:
                self._stats.note_own(str(path), part.digest.sha256)
                noted[path] = part.digest.sha256, found
        return noted

    def drop_replaced(self) -> None:
        """Remove the folders that this run replaced; one that can't be goes with the next run, or with `cache gc`.

        Files that were kept are links to theirs. Without these, their identities are others, which are noted.
        """
        with suppress(StoreError):
            drop_replaced(self._root, set(self._replaced))
        for noted in self._replaced.values():
            for path, (digest, content) in noted.items():
                with suppress(OSError):  # gone meanwhile
                    if _content_identity(path) == content:
                        self._stats.note_own(str(path), digest)
        self._replaced.clear()

    def held(self, view: Deliverable) -> str:
        """The view's folder if a model is there; else empty."""
        folder = self._root / "out" / view.recipe / view.name
        return os.path.relpath(folder) if folder.is_dir() else ""

    def _holds(self, path: Path, digest: Digest) -> bool:
        now = self._stats.look(str(path))
        if now == ABSENT or int(now.split(":")[1]) != digest.size_bytes:
            return False
        return self._stats.digest(str(path)) == digest.sha256

    def _copy(self, part: _Part, path: Path) -> None:
        """Copy a file of an artifact to `path`, verified on the way."""
        source = self._store.paths(part.artifact)[part.file]
        with open_regular(source) as blob, path.open("xb") as copy:
            found = clone_or_copy(blob.fileno(), copy.fileno())
            share(copy.fileno(), path.parent)
            os.fsync(copy.fileno())
        if found != part.digest.sha256:
            self._store.discard(part.digest)
            raise StoreError(
                f"a blob of {path.name} is damaged in the store",
                where=str(source),
                fix="run again: it will be rebuilt",
            )


@dataclass(frozen=True, slots=True)
class ViewPlaces:
    """Paths of what belongs to a view's folder, where readers don't look.

    Attributes:
        state: Which files the last build laid in it.
        staging: Where successors are made, and predecessors stay until the run ends.
        lock: Held by whoever changes the folder.
    """

    state: Path
    staging: Path
    lock: Path


def view_places(root: Path, recipe: str, variant: str) -> ViewPlaces:
    """Return where a store keeps what belongs to out/RECIPE/VARIANT."""
    hidden = root / "out" / _STATES / recipe
    # Of one length, however long the names are; no two views have the same.
    name = f"view-{hashlib.sha256(f'{recipe}/{variant}'.encode()).hexdigest()}"
    return ViewPlaces(
        hidden / f"{variant}.json", hidden / f"{variant}{_STAGING}", root / "locks" / name
    )


def drop_replaced(root: Path, views: Collection[tuple[str, str]] | None = None) -> int:
    """Remove the folders that were replaced, whoever may read them; the bytes freed.

    Args:
        views: (recipe, variant) of those to look at; None for all.

    Raises:
        StoreError: One can't be removed.
    """
    before = tree_bytes(root / "out")
    for staging in _staging_folders(root):
        recipe, variant = staging.parent.name, staging.name.removesuffix(_STAGING)
        if views is not None and (recipe, variant) not in views:
            continue
        check_no_links(root, staging)
        folder = root / "out" / recipe / variant
        check_no_links(root, folder)
        lock = wait_lock(view_places(root, recipe, variant).lock)
        try:
            tidy(folder, staging, root / "quarantine", keep_s=0)
        except OSError as error:
            raise store_error(error, staging) from error
        finally:
            lock.release()
    return before - tree_bytes(root / "out")


def replaced_bytes(root: Path) -> int:
    """Return what `drop_replaced` would free, at most."""
    return sum(map(tree_bytes, _staging_folders(root)))


def _staging_folders(root: Path) -> list[Path]:
    return sorted((root / "out" / _STATES).glob(f"*/*{_STAGING}"))


def _check_free(folder: Path, name: str) -> None:
    """Refuse a folder where a file belongs, and a file or link where a folder belongs.

    Raises:
        StoreError: Somebody put one there.
    """
    path = folder / name
    if path.is_dir():
        raise StoreError(f"{path} is a folder, where a file belongs", fix=f"remove {path}")
    for parent in path.parents[: len(Path(name).parts)]:
        if os.path.lexists(parent) and not is_real_folder(parent):
            raise StoreError(f"{parent} is a file, where a folder belongs", fix=f"remove {parent}")


def _link(source: Path, target: Path) -> bool:
    """Give a file of the old folder a name in the new one; whether that could be done."""
    if not stat.S_ISREG(os.lstat(source).st_mode):
        return False  # a link that somebody put there, to a file of the right content
    try:
        os.link(source, target)
    except OSError as error:
        if is_full(error):
            raise
        return False
    return True


def _content_identity(path: Path) -> str:
    """Return an identity of a file that changes with its content, and not with its names."""
    found = os.stat(path)
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a view: a file of an artifact."""

    artifact: Artifact
    file: str
    digest: Digest


def _files(view: Deliverable, artifacts: Mapping[tuple[str, str], Artifact]) -> dict[str, _Part]:
    wanted: dict[str, _Part] = {}
    for ref, name in view.parts:
        artifact = artifacts.get((ref.step, ref.output))
        if artifact is None:
            continue
        for path, digest in artifact.files:
            shown = f"{name.removesuffix('.json')}-{path}"
            if not name or path == REPORT_FILE:
                shown = name or path
            wanted[shown] = _Part(artifact, path, digest)
    return wanted


def laid_files(state: Path) -> dict[str, str]:
    """Return file -> sha256 of what the last build laid; empty if that is not known."""
    try:
        found = parse_json(read_regular(state))
        check_file_names(found)
        return {name: check_sha256(sha256) for name, sha256 in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
