"""Releases on disk: each a folder and an archive, written whole or not at all."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.adapters.store.delivery import (
    FILE_MODE,
    Content,
    one_at_a_time,
    put,
    scratch_beside,
    tidy,
    write_tree,
)
from onnxbuild.adapters.tally import Tally
from onnxbuild.core.errors import NotReproducibleError
from onnxbuild.core.event import BYTES
from onnxbuild.core.ports import EventSink
from onnxbuild.release_format.archive import HashSink, write_archive
from onnxbuild.release_format.tree import digests


@dataclass(frozen=True, slots=True)
class Published:
    """A release that was written.

    Attributes:
        folder: Its folder.
        archive: Its archive.
        files: How many files it has.
        size_bytes: Of the archive.
        sha256: Of the archive.
        written: Anything was; else it was there, identical.
    """

    folder: Path
    archive: Path
    files: int
    size_bytes: int
    sha256: str
    written: bool


def publish(
    releases: Path,
    name: str,
    tree: Mapping[str, Content],
    *,
    epoch_s: int,
    force: bool,
    events: Sequence[EventSink] = (),
) -> Published:
    """Write a release's folder and archive, unless they are there.

    Args:
        releases: The folder of all releases; made if it is missing.
        tree: Path in it -> content.
        epoch_s: The time of the archive's entries, in seconds since 1970.
        force: Replace one that differs.
        events: Take how many bytes were written.

    Raises:
        NotReproducibleError: There is one of this name that differs.
        StoreError: A blob is damaged.
        BuildError: It can't be written; what was there is as it was.
    """
    with one_at_a_time(releases):
        return _publish(releases, name, tree, epoch_s=epoch_s, force=force, events=events)


def _publish(
    releases: Path,
    name: str,
    tree: Mapping[str, Content],
    *,
    epoch_s: int,
    force: bool,
    events: Sequence[EventSink],
) -> Published:
    folder, archive = releases / name, releases / f"{name}.tar"
    tidy(releases)
    size_bytes = sum(each.size_bytes for each in digests(tree).values())
    tally = Tally(events, name, 2 * size_bytes, BYTES)  # its folder, and its archive
    known = _Archive(name, tree, epoch_s, tally)
    folder_differs = _difference(folder, tree) if os.path.lexists(folder) else ""
    archive_differs = os.path.lexists(archive) and known.differs(archive)
    if (folder_differs or archive_differs) and not force:
        raise NotReproducibleError(
            f"there is another {name}: {folder_differs or f'{archive.name} has other bytes'}",
            where=os.path.relpath(folder if folder_differs else archive),
            fix="choose another version; --force replaces what is there",
        )
    make_folder = bool(folder_differs) or not os.path.lexists(folder)
    make_archive = archive_differs or not os.path.lexists(archive)
    if make_folder or make_archive:
        with scratch_beside(releases) as scratch:
            if make_folder:
                write_tree(scratch / name, tree, tally.add)
            if make_archive:
                known.write(scratch / archive.name)
            if make_folder:
                put(scratch / name, folder, scratch)
            if make_archive:
                put(scratch / archive.name, archive, scratch)
    hashed = known.hashed()
    tally.end()
    return Published(
        folder=folder,
        archive=archive,
        files=len(tree),
        size_bytes=hashed.size_bytes,
        sha256=hashed.sha256,
        written=make_folder or make_archive,
    )


class _Archive:
    """A release's archive, hashed when it is written, or when its hash is asked for before."""

    def __init__(self, name: str, tree: Mapping[str, Content], epoch_s: int, tally: Tally) -> None:
        self._parts = (name, tree, epoch_s)
        self._tally = tally
        self._hashed: HashSink | None = None

    def hashed(self) -> HashSink:
        if self._hashed is None:
            self._fill(HashSink(_Counted(self._tally)))
        assert self._hashed is not None
        return self._hashed

    def differs(self, path: Path) -> bool:
        """Return whether a file is another one."""
        hashed = self.hashed()
        return _sha256(path, hashed.size_bytes) != hashed.sha256

    def write(self, path: Path) -> None:
        with path.open("xb") as file:
            self._fill(HashSink(_Counted(self._tally, file)))
            file.flush()
            os.fchmod(file.fileno(), FILE_MODE)
            os.fsync(file.fileno())

    def _fill(self, sink: HashSink) -> None:
        write_archive(sink, *self._parts)
        self._hashed = sink


class _Counted:
    """Counts what is written, and passes it on to a file, if there is one."""

    def __init__(self, tally: Tally, file: IO[bytes] | None = None) -> None:
        self._tally, self._file = tally, file

    def write(self, content: bytes, /) -> None:
        if self._file is not None:
            self._file.write(content)
        self._tally.add(len(content))


def _difference(folder: Path, tree: Mapping[str, Content]) -> str:
    """Describe the first difference of a folder from the tree; empty if there is none."""
    if folder.is_symlink() or not folder.is_dir():
        return "it is no folder"
    there = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }
    for name, digest in sorted(digests(tree).items()):
        if name not in there:
            return f"{name} is missing"
        if there[name].is_symlink() or _sha256(there[name], digest.size_bytes) != digest.sha256:
            return f"{name} has other bytes"
    return next((f"{name} is more" for name in there if name not in tree), "")


def _sha256(path: Path, size_bytes: int) -> str | None:
    return hash_file(str(path), size_bytes=size_bytes) if path.is_file() else None
