"""An OCI layout: a repository as a folder, `oci:FOLDER:TAG`.

Source: https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md.
"""

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import fsync_folder, temp_name
from onnxbuild.adapters.disk.locks import FileLock, wait_lock
from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, NotReproducibleError, UsageError
from onnxbuild.onnxkit.oci.layout import BLOBS, INDEX_FILE, MARK, MARK_FILE
from onnxbuild.onnxkit.oci.manifests import MANIFEST, REF_NAME, SHA256, Descriptor
from onnxbuild.registry.manifest import MANIFEST_MAX_BYTES, add_to_index, read_index, read_manifest
from onnxbuild.registry.repository import (
    BlobFile,
    BlobSource,
    Report,
    altered_manifest,
    unwritable,
)
from onnxbuild.regular_files import open_regular, read_regular

_CHUNK_BYTES = 1 << 20
_MODE = 0o644
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of filesystems without hard links: FAT, some of FUSE and of networks."""


class LayoutRepository:
    """One layout; all its tags.

    Args:
        make: Make it where there is nothing yet.

    Raises:
        UsageError: There is none, or the folder holds other things.
        BuildError: It can't be made.
    """

    def __init__(self, folder: Path, *, make: bool = False) -> None:
        self._folder, self._lock = folder, FileLock(None)
        mark = folder / MARK_FILE
        if mark.is_file():
            if make:
                self._make_blobs()
                self._lock = wait_lock(mark)
                self._check_index()
            return
        if not make:
            raise UsageError(f"there is no OCI layout in {folder}", fix="oci:FOLDER:TAG")
        if folder.exists() and (not folder.is_dir() or any(map(_is_other, folder.iterdir()))):
            raise UsageError(
                f"{folder} is no OCI layout, and not empty", fix="choose another folder"
            )
        self._make_blobs()
        self._make_mark(mark)
        self._lock = wait_lock(mark)

    def _make_blobs(self) -> None:
        try:
            (self._folder / BLOBS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(error, self._folder) from error

    def _check_index(self) -> None:
        """Refuse an index that can't be read, before any blob is sent."""
        try:
            self._entries()
        except NotReproducibleError as error:
            self._lock.release()
            fix = "push to another folder, or remove this file: the blobs stay, and the names of what was pushed are lost"
            raise NotReproducibleError(error.what, where=error.where, fix=fix) from error

    def _make_mark(self, mark: Path) -> None:
        """Write `oci-layout`; one that another push makes meanwhile stays, since it is locked."""
        temporary = mark.with_name(f".{temp_name()}")
        self._write(temporary, MARK)
        try:
            with suppress(FileExistsError):
                try:
                    mark.hardlink_to(temporary)
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                    with mark.open("xb") as file:  # not whole at once, and nobody reads it
                        file.write(MARK)
        except OSError as error:
            raise unwritable(error, mark) from error
        finally:
            temporary.unlink()

    def close(self) -> None:
        """Let others write to it."""
        self._lock.release()

    # --- blobs ---------------------------------------------------------------------------------------

    def has_blob(self, digest: Digest) -> bool:
        """Return whether it has a blob, and undamaged: a push mends what a disk altered."""
        path = str(self._blob(digest.sha256))
        return hash_file(path, size_bytes=digest.size_bytes) == digest.sha256

    def put_blob(self, digest: Digest, opened: Callable[[], BlobSource], report: Report) -> bool:
        """Store a blob; return True.

        Raises:
            NotReproducibleError: It is not what it should be.
        """
        source = opened()

        def write(path: Path) -> None:
            with path.open("xb") as file:
                blob = BlobFile(file, digest, str(path))
                while chunk := source.read(_CHUNK_BYTES):
                    blob.write(chunk)
                    report(blob.size_bytes)
                blob.check()
                file.flush()
                os.fsync(file.fileno())

        self._put(self._blob(digest.sha256), write)
        return True

    def save_blob(self, digest: Digest, file: BlobFile, report: Report) -> None:
        """Copy a blob to a file.

        Raises:
            NotReproducibleError: There is none, or it can't be read.
        """
        try:
            with open_regular(self._blob(digest.sha256), null_is_empty=False) as blob:
                while chunk := blob.read(_CHUNK_BYTES):
                    file.write(chunk)
                    report(file.size_bytes)
        except OSError as error:
            what = f"the blob sha256:{digest.sha256} can't be read: {error.strerror}"
            raise NotReproducibleError(what, where=str(self._folder)) from error

    def _blob(self, sha256: str) -> Path:
        return self._folder / BLOBS / sha256

    # --- manifests -----------------------------------------------------------------------------------

    def manifest(self, target: str) -> bytes | None:
        """Return the manifest of a tag, or of `sha256:...`; None if there is none.

        Raises:
            NotReproducibleError: The manifest of a tag is missing or has other bytes.
        """
        if target.startswith(SHA256):
            return self._small(self._blob(target.removeprefix(SHA256)))
        tagged = [each for each in self._entries() if each.annotations.get(REF_NAME) == target]
        if not tagged:
            return None
        sha256 = tagged[0].digest.sha256
        content = self._small(self._blob(sha256))
        if content is None or Digest.of(content).sha256 != sha256:
            raise altered_manifest(sha256, str(self._blob(sha256)))
        return content

    def put_manifest(self, content: bytes, tag: str = "") -> None:
        """Store a manifest, and let a tag name it, if one is given."""
        digest = Digest.of(content)
        self._write(self._blob(digest.sha256), content)
        if tag:
            artifact_type = read_manifest(content, str(self._folder)).artifact_type
            entry = Descriptor(MANIFEST, digest, artifact_type, {REF_NAME: tag})
            self._add(entry)

    def attach(self, content: bytes, descriptor: Descriptor, subject: str) -> None:
        """Store a manifest that refers to another: the layout's index lists it, without a name."""
        del subject
        self.put_manifest(content)
        if all(each.digest != descriptor.digest for each in self._entries()):
            self._add(replace(descriptor, annotations={}))

    def referrers(self, subject: str) -> Sequence[Descriptor]:
        """Return the manifests of the layout's index that refer to one; what can't be read does not."""
        found = []
        for each in self._entries():
            if each.media_type != MANIFEST:
                continue
            try:
                content = self._small(self._blob(each.digest.sha256))
                if content is None or Digest.of(content) != each.digest:
                    continue
                manifest = read_manifest(content, str(self._folder))
            except BuildError:
                continue
            if manifest.subject == subject:
                found.append(replace(each, artifact_type=manifest.artifact_type))
        return found

    def _entries(self) -> tuple[Descriptor, ...]:
        content = self._small(self._folder / INDEX_FILE)
        return () if content is None else read_index(content, str(self._folder / INDEX_FILE))

    def _add(self, entry: Descriptor) -> None:
        path = self._folder / INDEX_FILE
        self._write(path, add_to_index(self._small(path), entry, str(path)))

    # --- files ---------------------------------------------------------------------------------------

    def _small(self, path: Path) -> bytes | None:
        try:
            if path.stat().st_size > MANIFEST_MAX_BYTES:
                raise NotReproducibleError(
                    f"it has more than {MANIFEST_MAX_BYTES} bytes", where=str(path)
                )
            return read_regular(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BuildError(f"can't read {path}: {error.strerror}") from error

    def _write(self, path: Path, content: bytes) -> None:
        def write(temporary: Path) -> None:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

        self._put(path, write)

    def _put(self, path: Path, write: Callable[[Path], None]) -> None:
        """Write a file next to its place, then move it there."""
        temporary = path.with_name(f".{temp_name()}")
        try:
            try:
                write(temporary)
                temporary.chmod(_MODE)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            fsync_folder(path.parent)
        except OSError as error:
            raise unwritable(error, path) from error


def _is_other(path: Path) -> bool:
    """Return whether a path is nothing that a push, which may run at the same time, makes in a new layout."""
    return path.name not in (MARK_FILE, INDEX_FILE, "blobs") and not path.name.startswith(".")
