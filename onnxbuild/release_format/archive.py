"""A release as one file: a tar whose bytes depend on nothing but its contents and one time."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import IO, Protocol

from onnxbuild.adapters.store.delivery import (
    FILE_MODE,
    FOLDER_MODE,
    Blob,
    Content,
    damaged,
    digest_of,
)


class Sink(Protocol):
    """Receiver of bytes."""

    def write(self, content: bytes, /) -> object:
        """Take some."""
        ...


class HashSink:
    """Hashes what is written to it, and counts.

    Args:
        beyond: Takes the bytes, too; None to keep none.
    """

    def __init__(self, beyond: Sink | None = None) -> None:
        self._beyond = beyond
        self._sha256 = hashlib.sha256()
        self.size_bytes = 0

    def write(self, content: bytes) -> int:
        """Take some bytes."""
        self._sha256.update(content)
        self.size_bytes += len(content)
        if self._beyond is not None:
            self._beyond.write(content)
        return len(content)

    @property
    def sha256(self) -> str:
        """Digest of all bytes so far."""
        return self._sha256.hexdigest()


def write_archive(sink: HashSink, top: str, tree: Mapping[str, Content], epoch_s: int) -> None:
    """Write the archive: sorted, owned by nobody, all of one time, not compressed.

    Args:
        top: The one folder that holds all.
        tree: Path below it, with slashes -> content.
        epoch_s: The time of all entries, in seconds since 1970.

    Raises:
        StoreError: A blob is not what it should be.
    """
    folders = {str(parent) for name in tree for parent in PurePosixPath(top, name).parents}
    names = {**dict.fromkeys(folders - {"."}), **{f"{top}/{n}": c for n, c in tree.items()}}
    # PAX as it is without headers of its own: plain ustar, except for long or non-ASCII names.
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for name in sorted(names):
            _add(archive, _entry(name, epoch_s), names[name])


def _entry(name: str, epoch_s: int) -> tarfile.TarInfo:
    """An entry of nobody's: owner and group 0, without names."""
    entry = tarfile.TarInfo(name)
    entry.mtime = epoch_s
    return entry


def _add(archive: tarfile.TarFile, entry: tarfile.TarInfo, content: Content | None) -> None:
    if content is None:
        entry.type, entry.mode = tarfile.DIRTYPE, FOLDER_MODE
        archive.addfile(entry)
        return
    entry.mode = FILE_MODE
    entry.size = digest_of(content).size_bytes
    if isinstance(content, Blob):
        with content.path.open("rb") as file:
            reader = _Reader(file)
            archive.addfile(entry, reader)
        if reader.sha256.hexdigest() != content.digest.sha256:
            raise damaged(content)
    else:
        archive.addfile(entry, io.BytesIO(content))


class _Reader:
    """Hashes what is read through it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self.sha256.update(content)
        return content
