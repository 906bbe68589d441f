"""The folders below out/: copies of artifacts that a person may open, edit or delete."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from onnxbuild.adapters.disk_store import DiskStore
from onnxbuild.adapters.durable import (
    fsync_folder,
    make_folder,
    store_error,
    temp_name,
    write_atomically,
)
from onnxbuild.adapters.locks import wait_lock
from onnxbuild.adapters.statcache import ABSENT, StatCache
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import StoreError
from onnxbuild.core.graph import View
from onnxbuild.core.step import REPORT_FILE

_FICLONE = 0x40049409  # linux/fs.h: share the source's blocks with this file
_CHUNK_BYTES = 1 << 20


class DiskViews:
    """Views below `store.root`/out.

    Args:
        store: Where the artifacts are.
        stats: Remembers the identity of every file laid.
    """

    def __init__(self, store: DiskStore, stats: StatCache) -> None:
        self._store = store
        self._stats = stats

    def lay(self, view: View, artifacts: Mapping[tuple[str, str], Artifact]) -> tuple[str, ...]:
        """Make out/RECIPE/VARIANT hold its artifacts' files; returns what had to be put back.

        Files that an earlier build laid there and this one does not are removed; files that
        nobody laid are left alone.

        Raises:
            StoreError: The folder can't be written, or a blob is damaged.
        """
        folder = self._store.root / "out" / view.recipe / view.variant
        wanted = _files(view, artifacts)
        state = self._store.root / "out" / ".laid" / view.recipe / f"{view.variant}.json"
        lock = wait_lock(self._store.root / "locks" / _lock_name(view))
        try:
            laid = _laid(state)
            remarks = []
            for name, digest in wanted.items():
                path = folder / name
                if self._holds(path, digest):
                    continue
                if laid.get(name) == digest.sha256:
                    gone = self._stats.look(str(path)) == ABSENT
                    remarks.append(f"{path} was {'deleted' if gone else 'changed'}; put back")
                self._copy(digest, path)
            for name in laid.keys() - wanted.keys():
                if not (folder / name).is_dir():  # else somebody put it there
                    (folder / name).unlink(missing_ok=True)
            now = {name: digest.sha256 for name, digest in wanted.items()}
            if now != laid:
                content = json.dumps(now, sort_keys=True, indent=1).encode()
                write_atomically(state, content, self._store.root / "tmp")
            return tuple(remarks)
        except OSError as error:
            raise store_error(error, error.filename2 or folder) from error
        finally:
            lock.release()

    def held(self, view: View) -> str:
        """The view's folder if a model lies there; else empty."""
        folder = self._store.root / "out" / view.recipe / view.variant
        return os.path.relpath(folder) if folder.is_dir() else ""

    def forgotten(self, recipe: str, variants: Collection[str]) -> tuple[str, ...]:
        """Folders below the recipe's that hold a bundle of none of its variants."""
        folders = sorted((self._store.root / "out" / recipe).glob("*/manifest.json"))
        return tuple(
            os.path.relpath(path.parent) for path in folders if path.parent.name not in variants
        )

    def _holds(self, path: Path, digest: Digest) -> bool:
        now = self._stats.look(str(path))
        if now == ABSENT or int(now.split(":")[1]) != digest.size_bytes:
            return False
        return self._stats.digest(str(path)) == digest.sha256

    def _copy(self, digest: Digest, path: Path) -> None:
        """Copy a blob to `path`, verified on the way."""
        source = self._store.blob(digest)
        make_folder(path.parent)
        temp = self._store.root / "tmp" / temp_name()
        try:
            with source.open("rb") as blob, temp.open("wb") as copy:
                found = clone_or_copy(blob.fileno(), copy.fileno())
                os.fsync(copy.fileno())
            if found != digest.sha256:
                self._store.set_aside(source)
                raise StoreError(
                    f"a blob of {path.name} is damaged in the store",
                    where=str(source),
                    fix="run again: it will be rebuilt",
                )
            temp.replace(path)
            fsync_folder(path.parent)
        finally:
            temp.unlink(missing_ok=True)
        self._stats.note_own(str(path), digest.sha256)


def clone_or_copy(source: int, target: int) -> str:
    """Give `target` the bytes of `source`, blocks shared where the filesystem can; its sha256."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
        cloned = True
    except OSError:
        cloned = False
    digest = hashlib.sha256()
    while chunk := os.read(source, _CHUNK_BYTES):
        digest.update(chunk)
        if not cloned:
            view = memoryview(chunk)
            while view:
                view = view[os.write(target, view) :]
    return digest.hexdigest()


def _lock_name(view: View) -> str:
    """Of one length, however long the names are; no two views have the same."""
    return f"view-{hashlib.sha256(f'{view.recipe}/{view.variant}'.encode()).hexdigest()}"


def _files(view: View, artifacts: Mapping[tuple[str, str], Artifact]) -> dict[str, Digest]:
    wanted: dict[str, Digest] = {}
    for ref, name in view.parts:
        artifact = artifacts.get((ref.step, ref.output))
        if artifact is None:
            continue
        for path, digest in artifact.files:
            if not name:
                wanted[path] = digest
            elif path == REPORT_FILE:
                wanted[name] = digest
            else:
                wanted[f"{name.removesuffix('.json')}-{path}"] = digest
    return wanted


def _laid(state: Path) -> dict[str, str]:
    """What the last build laid; empty if that is not known."""
    try:
        found = json.loads(state.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
