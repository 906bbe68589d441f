"""The store on disk: immutable blobs by content, action records as the commit point."""

import errno
import hashlib
import os
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import (
    fsync_folder,
    make_folder,
    store_error,
    write_atomically,
)
from onnxbuild.adapters.disk.locks import FileLock, try_lock
from onnxbuild.adapters.disk.plain_files import check_no_links, parse_json
from onnxbuild.adapters.disk.statcache import ABSENT, StatCache, hash_file
from onnxbuild.adapters.store.layout import (
    FOLDERS,
    MADE_LATER,
    is_new,
    record_path,
    refuse_foreign,
)
from onnxbuild.core.action import MAX_TRACES, ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest, canonical_json, tagged_sha256
from onnxbuild.core.errors import StepError, StoreError
from onnxbuild.regular_files import NOT_REGULAR, read_regular

_RECORD_FORMAT = 2  # increment when a record's form changes
_SEALED = b'{"checksum":"%b",' % (b"0" * 64)  # how a record starts, in canonical JSON


def seal(key: str, results: Iterable[ActionResult]) -> bytes:
    """A record's bytes.

    Args:
        key: Of all the results.
        results: The newest first.
    """
    body = {
        "format": _RECORD_FORMAT,
        "key": key,
        "traces": [result.to_json() for result in results],
    }
    body["checksum"] = tagged_sha256("record", body)
    return canonical_json(body)


def read_record(content: bytes, key: str) -> tuple[ActionResult, ...]:
    """The results in a record; none if another version of this program wrote it.

    Args:
        content: The file's bytes.
        key: What it must be the record of.

    Raises:
        ValueError, KeyError, TypeError: It is damaged, or forged in a way that no record can be.
    """
    start, checked = content[: len(_SEALED)], content[len(_SEALED) :]
    checksum = hashlib.sha256(b'["record",{' + checked + b"]").hexdigest()
    if start != _SEALED.replace(b"0" * 64, checksum.encode()):
        raise ValueError("the checksum does not match")
    body = parse_json(content)
    if body["key"] != key:
        raise ValueError("another key")
    if body["format"] != _RECORD_FORMAT:
        return ()  # sound, but of another version of this program
    results = tuple(ActionResult.from_json(each) for each in body["traces"])
    for result in results:
        if result.key != key:
            raise ValueError("another key")
        _check_texts(result)
    return results


def _check_texts(result: ActionResult) -> None:
    """Refuse what can be no path, no digest and no sentence.

    Raises:
        TypeError, ValueError: Some of it is not a text, or holds a NUL.
    """
    seen = result.observed
    texts: list[object] = [*result.outputs, *result.notes]
    for field in (seen.sources, seen.data, seen.distributions, seen.links, seen.existence):
        texts += [*field, *field.values()]
    for folder, listing in seen.listings.items():
        texts += [folder, *listing.names, *listing.found]
    for finding in (*result.findings, *([result.not_applicable] if result.not_applicable else ())):
        texts += [finding.what, finding.where, finding.fix]
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is not a text")
        if "\0" in text:
            raise ValueError(f"{text!r} holds a NUL")
    spent = result.expense
    if not all(
        isinstance(each, (int, float)) for each in (spent.wall_s, spent.cpu_s, spent.peak_bytes)
    ):
        raise TypeError("an expense is not a number")


_UNREADABLE = (
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.EISDIR,
    errno.ELOOP,
    NOT_REGULAR,
)  # the file's own fault
_IGNORE_ALL = b"# Made by onnxbuild: the store can always be built again.\n*\n"
_LAYOUT_FORMAT = "1"  # increment when the folders below the store change their meaning


class DiskStore:
    """Blobs and action records below one folder.

    Args:
        root: The store's folder; made when first written to.
        stats: Digests of blobs by stat identity.
    """

    def __init__(self, root: Path, stats: StatCache) -> None:
        self.root = root
        self._stats = stats
        self._records, self._blobs = f"{root}/ac", f"{root}/cas/sha256"
        self._read: dict[str, str] = {}  # blobs by path, with their identity when all was read

    def prepare(self) -> None:
        """Make the store's folders.

        Raises:
            StoreError: It can't be made, a newer onnxbuild wrote it, one of its folders is a
                symbolic link, or the place of one is taken.
        """
        found = self.check_format()
        is_own = is_new(self.root)
        make_folder(self.root)
        for name in FOLDERS:
            check_no_links(self.root, self.root / name)
        if not found:
            refuse_foreign(self.root)
        for name in FOLDERS:
            if name not in MADE_LATER:
                make_folder(self.root / name)
        if not found:
            write_atomically(
                self.root / "FORMAT", f"{_LAYOUT_FORMAT}\n".encode(), self.root / "tmp"
            )
        if is_own:  # a folder that holds other things may be under version control
            write_atomically(self.root / ".gitignore", _IGNORE_ALL, self.root / "tmp")

    def check_format(self) -> str:
        """The store's format; empty if there is no store yet.

        Raises:
            StoreError: It can't be read, or a newer onnxbuild wrote it.
        """
        mark = self.root / "FORMAT"
        try:
            found = read_regular(mark).strip().decode("ascii", "backslashreplace")
        except FileNotFoundError:
            found = ""
        except NotADirectoryError as error:
            raise store_error(error, self.root) from error
        except OSError as error:
            raise StoreError(
                f"can't read {mark}: {error.strerror}",
                fix="make it a file that you can read, or choose another folder with --store FOLDER",
            ) from error
        if found.isdigit() and found != _LAYOUT_FORMAT:
            raise StoreError(
                f"the store {self.root} has format {found}; this onnxbuild writes {_LAYOUT_FORMAT}",
                fix="upgrade onnxbuild, or choose another folder with --store FOLDER",
            )
        if found and found != _LAYOUT_FORMAT:
            raise StoreError(
                f"{mark} is damaged: it says '{found[:20]}' instead of the store's format",
                fix=f"remove {mark}; whatever is read from the store is checked",
            )
        return found

    def blob(self, digest: Digest) -> Path:
        """Return where a blob is, or would be."""
        return Path(self._blob(digest.sha256))

    def _blob(self, sha256: str) -> str:
        return f"{self._blobs}/{sha256[:2]}/{sha256}"

    def record_path(self, key: str) -> Path:
        """Return where a key's record is, or would be."""
        return record_path(self.root, key)

    # --- action records ---------------------------------------------------------------------------

    def expect(self, keys: Collection[str]) -> None:
        """Do nothing: what is on this disk is near."""

    def lookup(self, key: str) -> tuple[ActionResult, ...]:
        """Return the sound results under `key`, newest first; set a damaged record aside."""
        return self.own_results(key)

    def own_results(self, key: str) -> tuple[ActionResult, ...]:
        """Return the sound results that are recorded in this folder; set a damaged record aside."""
        name = f"{self._records}/{key[:2]}/{key}.json"
        path = Path(name)
        self._stats.look(name)
        try:
            content = read_regular(name)
        except FileNotFoundError:
            return ()
        except NotADirectoryError as error:
            in_the_way = next((each for each in path.parents if each.is_file()), path.parent)
            raise store_error(error, in_the_way) from error
        except OSError as error:
            if error.errno not in _UNREADABLE:
                raise StoreError(
                    f"can't read {path}: {error.strerror}",
                    fix="run again; if that does not help, choose another folder with --store FOLDER",
                ) from error
            self.set_aside(path)
            return ()
        try:
            return read_record(content, key)
        except (ValueError, KeyError, TypeError):
            self.set_aside(path)
            return ()

    def read_record(self, path: Path) -> tuple[ActionResult, ...]:
        """The results in a record file; empty if it is damaged."""
        try:
            return read_record(read_regular(path), path.stem)
        except (OSError, ValueError, KeyError, TypeError):
            return ()

    def record(self, result: ActionResult) -> None:
        """Commit a result as the newest of its key."""
        others = [t for t in self.own_results(result.key) if t.observed != result.observed]
        path = self.record_path(result.key)
        check_no_links(self.root, path.parent)
        content = seal(result.key, [result, *others][:MAX_TRACES])
        write_atomically(path, content, self.root / "tmp")
        self._stats.look(str(path))

    # --- blobs --------------------------------------------------------------------------------------

    def ingest(self, folder: Path, kind: str) -> Artifact:
        """Move the files below `folder` into the store; a link to one of its blobs stands for it."""
        files: list[tuple[str, Digest]] = []
        for base, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                path = Path(base) / name
                handed_on = self._linked_blob(path)
                if handed_on is not None:
                    files.append((path.relative_to(folder).as_posix(), handed_on))
                    continue
                if path.is_symlink() or not path.is_file():
                    raise StepError(
                        f"output '{path.relative_to(folder)}' is not a plain file",
                        fix="write a regular file",
                    )
                files.append((path.relative_to(folder).as_posix(), self._take(path)))
        try:
            return Artifact(kind, tuple(files))
        except ValueError as error:
            raise StepError(
                f"an output file has a name that other systems can't hold: {error}",
                fix="write it under another name",
            ) from error

    def _linked_blob(self, path: Path) -> Digest | None:
        """The blob that an output links to, if its stat identity is unchanged; else None."""
        if not path.is_symlink():
            return None
        target = path.resolve()
        if str(target) != os.path.realpath(self._blob(target.name)) or not target.is_file():
            return None
        try:
            digest = Digest(target.name, target.stat().st_size)
        except ValueError:
            return None  # somebody put a file of another name among the blobs
        return None if self._blob_fault(digest, by_content=False) else digest

    def _take(self, path: Path) -> Digest:
        sha256 = hash_file(str(path))
        if sha256 is None:
            raise StoreError(f"can't read {path}", where=str(path))
        digest = Digest(sha256, path.stat().st_size)
        self.adopt(path, digest)
        return digest

    def adopt(self, path: Path, digest: Digest) -> None:
        """Move a file of known content into the store, unless its blob is there.

        Args:
            path: A file on the store's filesystem.
            digest: That of its content.

        Raises:
            StoreError: It can't be moved.
        """
        target = self.blob(digest)
        if not self._blob_fault(digest, by_content=True):
            return
        check_no_links(self.root, target.parent)
        make_folder(target.parent)
        try:
            with path.open("rb") as file:
                os.fsync(file.fileno())
            path.chmod(0o444)
            path.replace(target)
            fsync_folder(target.parent)
        except OSError as error:
            raise store_error(error, target) from error
        self._stats.note_own(str(target), digest.sha256)
        self._read[str(target)] = self._stats.look(str(target))

    def faults(self, artifact: Artifact, *, by_content: bool = False) -> tuple[str, ...]:
        """Check the artifact's blobs; return what is wrong, and move bad ones to quarantine."""
        found = []
        for path, digest in artifact.files:
            fault = self._blob_fault(digest, by_content=by_content)
            if fault:
                found.append(f"{path} {fault}")
        return tuple(found)

    def _blob_fault(self, digest: Digest, *, by_content: bool) -> str:
        path = self._blob(digest.sha256)
        now = self._stats.look(path)
        if now == ABSENT:
            return "is missing from the store"
        if int(now.split(":")[1]) != digest.size_bytes:
            self.set_aside(Path(path))
            return "has the wrong size in the store"
        is_known = self._stats.recorded(path, now) == digest.sha256
        if is_known and (not by_content or self._read.get(path) == now):
            return ""
        checked_ns = time.time_ns()
        found = hash_file(path)
        if found is None:
            self.set_aside(Path(path))
            return "can't be read from the store"
        if found != digest.sha256:
            self.set_aside(Path(path))
            return "is damaged in the store"
        self._stats.note(path, found, now, checked_ns)
        self._read[path] = now
        return ""

    def paths(self, artifact: Artifact) -> Mapping[str, Path]:
        """File of the artifact -> its blob."""
        return {path: self.blob(digest) for path, digest in artifact.files}

    def discard(self, digest: Digest) -> None:
        """Move a damaged blob out of the way."""
        self.set_aside(self.blob(digest))

    def set_aside(self, path: Path) -> None:
        """Move a bad file out of the way; keep it for whoever wants to know.

        Nothing is done where another process has just done so.

        Raises:
            StoreError: It can't be moved, or is behind a symbolic link.
        """
        check_no_links(self.root, path.parent)
        target = self.root / "quarantine" / f"{path.name}.{time.time_ns()}"
        try:
            make_folder(target.parent)
            path.replace(target)
        except FileNotFoundError:
            pass  # another run found the same damage
        except OSError as error:
            raise store_error(error, path) from error
        self._stats.look(str(path))

    # --- locks --------------------------------------------------------------------------------------

    def try_lock(self, key: str) -> FileLock | None:
        """The right to build `key`, or None while another run has it."""
        return try_lock(self.root / "locks" / f"key-{key}")
