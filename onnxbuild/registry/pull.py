"""Pull: what is signed is checked first, then each blob; the folder appears when all of it is right."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import fsync_folder
from onnxbuild.adapters.disk.locks import try_lock
from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.adapters.store.delivery import FILE_MODE, FOLDER_MODE
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, NotReproducibleError, UsageError
from onnxbuild.onnxkit.oci.manifests import SHA256
from onnxbuild.registry.attached import (
    SIGNED_FILES,
    SMALL_MAX_BYTES,
    Attached,
    attached_to,
    check_signed,
)
from onnxbuild.registry.manifest import model_files, read_manifest
from onnxbuild.registry.progress import Progress, as_size
from onnxbuild.registry.reference import Reference
from onnxbuild.registry.refusals import CredentialsError, RegistryUnavailableError
from onnxbuild.registry.repository import BlobFile, Repository, unwritable

_LOCK, _BLOBS, _BLOB, _TREE = "lock", "blobs", "blob", "tree"
_DISK_BLOCK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Pulled:
    """Result of a pull.

    Attributes:
        sha256: The manifest's.
        folder: Where the files are.
        files: How many there are, with signature and provenance.
        size_bytes: Of all files.
        fetched_bytes: Of blobs that were fetched.
        signature: What is known of the signature: `checked`, `not checked` or `none`.
        written: Anything was; else it was there, identical.
    """

    sha256: str
    folder: Path
    files: int
    size_bytes: int
    fetched_bytes: int
    signature: str
    written: bool


def pull(
    reference: Reference,
    repository: Repository,
    folder: Path,
    *,
    key: Path | None,
    progress: Progress,
) -> Pulled:
    """Fetch an artifact into a folder.

    Args:
        folder: Where it goes; made. Blobs of a pull that broke off are kept next to it, for the next one.
        key: File of the public key that must have signed it; None to take it as it is.
        progress: Takes how it goes on.

    Raises:
        UsageError: There is no such artifact, the folder holds something else, or the key is none.
        NotReproducibleError: It is damaged or altered, or not signed with the key.
        BuildError: The registry can't be reached, or the folder can't be written.
    """
    content, sha256 = _manifest(reference, repository)
    files = model_files(read_manifest(content, str(reference)), str(reference))
    attached = attached_to(sha256, files, repository, str(reference))
    written = not os.path.lexists(folder)
    with _partial(folder) if written else _elsewhere() as partial:
        fetcher = _Fetcher(repository, partial, str(reference), progress)
        if written:
            fetcher.check_space(files)
        small = {
            path: fetcher.blob(path, files[path]).read_bytes()
            for path in SIGNED_FILES
            if path in files and files[path].size_bytes <= SMALL_MAX_BYTES
        }
        signed = check_signed(files, small, attached, key, str(reference))
        everything = {**files, **{n: Digest.of(c) for n, c in signed.files.items()}}
        size_bytes = sum(each.size_bytes for each in everything.values())
        if written:
            tree = _assembled(partial, files, signed, fetcher)
            _move(tree, folder)
        else:
            _check_same(folder, everything)
    return Pulled(
        sha256, folder, len(everything), size_bytes, fetcher.fetched_bytes, signed.state, written
    )


def _manifest(reference: Reference, repository: Repository) -> tuple[bytes, str]:
    content = repository.manifest(reference.target)
    if content is None:
        raise UsageError(
            "there is no such artifact", where=str(reference), fix="check name and tag"
        )
    sha256 = Digest.of(content).sha256
    if reference.sha256 and sha256 != reference.sha256:
        raise NotReproducibleError(
            f"the manifest was altered: it has the digest {SHA256}{sha256}", where=str(reference)
        )
    return content, sha256


@contextmanager
def _partial(folder: Path) -> Iterator[Path]:
    """The hidden folder next to the target that holds what was fetched; only a registry that broke off, or a kill, leaves it."""
    path = folder.parent / f".{folder.name}.pull"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(error, path) from error
    if path.is_symlink():
        raise UsageError(f"{path} is a link", fix="remove it, or choose another -o FOLDER")
    lock = try_lock(path / _LOCK)
    if lock is None:
        raise UsageError(
            f"another pull writes {folder}", fix="wait for it, or choose another -o FOLDER"
        )
    is_kept = False
    try:
        yield path
    except (RegistryUnavailableError, CredentialsError):
        is_kept = any((path / _BLOBS).glob("*"))
        raise
    except OSError as error:
        raise unwritable(error, folder) from error
    finally:
        if not is_kept:
            _remove(path)
        lock.release()


def _remove(partial: Path) -> None:
    """Remove a folder, its lock last: another pull may wait for it."""
    for name in (_BLOBS, _TREE, _BLOB, _LOCK):
        _drop(partial / name)
    with suppress(OSError):  # another pull has made its lock in it
        partial.rmdir()


def _drop(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


@contextmanager
def _elsewhere() -> Iterator[Path]:
    """A folder for the few small files that a folder which is there is compared with: nothing is written next to it."""
    try:
        with tempfile.TemporaryDirectory(prefix="onnxbuild-pull-") as path:
            yield Path(path)
    except OSError as error:
        raise unwritable(error, Path(tempfile.gettempdir())) from error


class _Fetcher:
    """Fetches each blob once, into files named by their digest."""

    def __init__(
        self, repository: Repository, partial: Path, where: str, progress: Progress
    ) -> None:
        self._repository, self._where, self._progress = repository, where, progress
        self._partial, self._blobs = partial, partial / _BLOBS
        self._whole: set[str] = set()
        self.fetched_bytes = 0
        if self._blobs.is_symlink():
            _drop(self._blobs)
        self._blobs.mkdir(exist_ok=True)
        _drop(partial / _TREE)  # of a pull that was killed

    def blob(self, name: str, digest: Digest) -> Path:
        """Return the file of a blob, fetched and checked; one of an earlier pull is checked again."""
        path = self._blobs / digest.sha256
        if digest.sha256 in self._whole:
            return path
        if (
            path.is_symlink()
            or hash_file(str(path), size_bytes=digest.size_bytes) != digest.sha256
        ):
            path.unlink(missing_ok=True)
            temporary = self._partial / _BLOB
            temporary.unlink(missing_ok=True)
            report = self._progress.blob("fetching", name, digest.size_bytes)
            with temporary.open("xb") as file:
                taken = BlobFile(file, digest, self._where)
                self._repository.save_blob(digest, taken, report)
                taken.check()
                file.flush()
                os.fchmod(file.fileno(), FILE_MODE)
                os.fsync(file.fileno())
            temporary.rename(path)
            self.fetched_bytes += digest.size_bytes
        self._whole.add(digest.sha256)
        return path

    def check_space(self, files: Mapping[str, Digest]) -> None:
        """See that the disk takes what is not there yet; a blob of several files is there once for each.

        Raises:
            BuildError: It does not.
        """
        there = {d for d in files.values() if (self._blobs / d.sha256).is_file()}
        needed = sum(map(_on_disk, files.values())) - sum(map(_on_disk, there))
        free = shutil.disk_usage(self._partial).free
        if needed > free:
            raise BuildError(
                f"it needs {as_size(needed)}, and the disk of {self._partial.parent} has "
                f"{as_size(free)} left",
                fix="free some space, or choose another -o FOLDER",
            )


def _on_disk(digest: Digest) -> int:
    return -(-digest.size_bytes // _DISK_BLOCK_BYTES) * _DISK_BLOCK_BYTES


def _assembled(
    partial: Path, files: Mapping[str, Digest], signed: Attached, fetcher: _Fetcher
) -> Path:
    """The folder as it will be, made in `partial`; a blob of several files is copied for each but the last."""
    tree = partial / _TREE
    tree.mkdir()
    blobs = {path: fetcher.blob(path, files[path]) for path in sorted(files)}
    last = {digest.sha256: path for path, digest in sorted(files.items())}
    for path, blob in blobs.items():
        place = tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if last[files[path].sha256] == path:
            blob.rename(place)
        else:
            shutil.copyfile(blob, place)
            place.chmod(FILE_MODE)
    for name, content in signed.files.items():
        (tree / name).write_bytes(content)
        (tree / name).chmod(FILE_MODE)
    for folder, _, _ in os.walk(tree):
        Path(folder).chmod(FOLDER_MODE)
    return tree


def _move(tree: Path, folder: Path) -> None:
    if os.path.lexists(folder):
        raise UsageError(f"{folder} appeared meanwhile", fix="type the same command again")
    tree.rename(folder)
    fsync_folder(folder.parent)


def _check_same(folder: Path, files: Mapping[str, Digest]) -> None:
    """See that a folder that is there holds these files and nothing else.

    Raises:
        UsageError: It does not.
    """
    why = ""
    if folder.is_symlink() or not folder.is_dir():
        why = "it is no folder"
    else:
        there = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_symlink() or not path.is_dir()
        }
        for name, digest in sorted(files.items()):
            if name not in there:
                why = why or f"{name} is missing"
            elif there[name].is_symlink() or digest.sha256 != hash_file(
                str(there[name]), size_bytes=digest.size_bytes
            ):
                why = why or f"{name} has other bytes"
        why = why or next((f"{name} is more" for name in there if name not in files), "")
    if why:
        raise UsageError(
            f"{folder} is there and differs: {why}",
            fix="remove it, or choose another with -o FOLDER",
        )
