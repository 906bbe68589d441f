"""SHA256SUMS against the files that are there."""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from onnxbuild.adapters.disk.statcache import hash_file, identity
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.core.file_names import CHARACTERS_MAX, FILES_MAX, PARTS_MAX, check_names_everywhere
from onnxbuild.lock.text import parse_lock
from onnxbuild.regular_files import read_regular
from onnxbuild.release_format.forms import printable, read_json, sums
from onnxbuild.release_format.layout import NOT_SUMMED, RELEASE_FILE, SUMS_FILE

CHANGED = "was changed while it was checked"
TEXT_MAX_BYTES = 16 << 20
"""Limit for a file that is read as a whole; SHA256SUMS of 10,000 files with the longest paths has 11 MiB."""
_TEXTS_MAX_BYTES = 256 << 20
"""Limit for all that a release holds besides its lock's outputs."""

_OTHERS = "names files that no release has"
_TOO_DEEP = f"a path has at most {PARTS_MAX} parts and {CHARACTERS_MAX:,} characters"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReleaseFault:
    """One thing that is not as it should be.

    Attributes:
        file: Path in the release.
        what: A sentence about it, without a subject.
    """

    file: str
    what: str

    def __str__(self) -> str:
        return printable(f"{self.file} {self.what}")


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a release, and how they differ from SHA256SUMS.

    Attributes:
        folder: Where it is.
        digests: Path in it -> digest, of every file that is there; none if the folder is refused before any is read.
        faults: What differs from SHA256SUMS.
        identities: Path in it -> identity when it was hashed.
    """

    folder: Path
    digests: Mapping[str, Digest]
    faults: tuple[ReleaseFault, ...]
    identities: Mapping[str, str] = field(default_factory=dict)

    def read(self, name: str) -> bytes:
        """The content of one of them, as it was hashed.

        Raises:
            NotReproducibleError: It can't be read, has too many bytes for a text, or is another one by now.
        """
        return read_hashed(self.folder, name, self.digests[name])

    def changed(self) -> tuple[ReleaseFault, ...]:
        """Return the files that are not those that were hashed: somebody wrote to the folder meanwhile."""
        return tuple(
            ReleaseFault(name, CHANGED)
            for name, known in self.identities.items()
            if identity(str(self.folder / name)) != known
        )


def read_hashed(folder: Path, name: str, digest: Digest) -> bytes:
    """Return the content of a release's file that was hashed before.

    Raises:
        NotReproducibleError: It can't be read, has too many bytes for a text, or is another one by now.
    """
    try:
        content = read_regular(folder / name, most_bytes=TEXT_MAX_BYTES)
    except OSError as error:
        raise NotReproducibleError(
            f"it can't be read: {error.strerror}", where=printable(name)
        ) from error
    if Digest.of(content) != digest:
        raise NotReproducibleError(f"it {CHANGED}", where=printable(name), fix="type it again")
    return content


def check_sums(folder: Path) -> Files:
    """Compare with SHA256SUMS: names and sizes first, then the hash of every file."""
    there, faults = _listed(folder)
    faults += _size_faults(folder, there)
    if faults:
        return Files(folder, {}, tuple(faults))
    identities = {name: identity(str(folder / name)) for name in there}
    digests: dict[str, Digest] = {}
    for name, size_bytes in there.items():
        sha256 = hash_file(str(folder / name), size_bytes=size_bytes)
        if sha256 is None:
            faults.append(ReleaseFault(name, "can't be read, or changes"))
        else:
            digests[name] = Digest(sha256, size_bytes)
    faults += compare_sums(digests, folder / SUMS_FILE)
    if not faults and digests[SUMS_FILE] != Digest.of(sums(digests)):
        faults.append(
            ReleaseFault(SUMS_FILE, "names these files in other bytes than a release has")
        )
    return Files(folder, digests, tuple(faults), identities)


def compare_sums(there: Mapping[str, Digest], file: Path) -> tuple[ReleaseFault, ...]:
    """Compare files with SHA256SUMS; return what differs.

    Args:
        file: SHA256SUMS.
    """
    recorded, faults = _recorded(file)
    for path, sha256 in recorded.items():
        if path not in there:
            faults.append(ReleaseFault(path, "is missing"))
        elif there[path].sha256 != sha256:
            found = there[path].sha256
            faults.append(
                ReleaseFault(path, f"has changed: {found[:12]}, recorded as {sha256[:12]}")
            )
    faults += [
        ReleaseFault(path, "was added: SHA256SUMS does not name it")
        for path in there
        if path not in recorded and path not in NOT_SUMMED
    ]
    return tuple(faults)


def _listed(folder: Path) -> tuple[dict[str, int], list[ReleaseFault]]:
    """Return (path -> size of every file; what no release holds), of a folder that may be anybody's."""
    found: dict[str, int] = {}
    faults: list[ReleaseFault] = []
    waiting = [""]
    while waiting and len(found) <= FILES_MAX:
        below = waiting.pop()
        try:
            with os.scandir(folder / below) as entries:
                inside = sorted(islice(entries, FILES_MAX + 1), key=lambda entry: entry.name)
        except OSError as error:
            faults.append(ReleaseFault(below, f"can't be listed: {error.strerror}"))
            continue
        if below and not inside:
            faults.append(ReleaseFault(below, "is an empty folder"))
        for entry in inside:
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                if name.count("/") + 1 >= PARTS_MAX or len(name) > CHARACTERS_MAX:
                    return found, [ReleaseFault(SUMS_FILE, f"{_OTHERS}: {_TOO_DEEP}")]
                waiting.append(name)
            elif entry.is_file(follow_symlinks=False):
                found[name] = entry.stat(follow_symlinks=False).st_size
            else:
                faults.append(ReleaseFault(name, "is neither a file nor a folder"))
    try:
        check_names_everywhere(found)
    except ValueError as error:
        faults.append(ReleaseFault(SUMS_FILE, f"{_OTHERS}: {error}"))
    return dict(sorted(found.items())), faults


def _size_faults(folder: Path, there: Mapping[str, int]) -> list[ReleaseFault]:
    """Refuse a release by its sizes: a sparse file takes hours to hash, and nothing to make.

    What a release holds besides texts is an output of a step, whose size its lock names.
    """
    if sum(there.values()) <= _TEXTS_MAX_BYTES:
        return []
    outputs = _locked_sizes(folder, there)
    largest = max(_TEXTS_MAX_BYTES, *outputs)
    for name, size in there.items():
        if size > largest:
            what = f"has {size:,} bytes; its lock names no output of more than {largest:,}"
            return [ReleaseFault(name, what)]
    most = _TEXTS_MAX_BYTES + sum(outputs)
    if sum(there.values()) > most:
        what = f"names files of {sum(there.values()):,} bytes; the lock's outputs have {most:,} at most"
        return [ReleaseFault(SUMS_FILE, what)]
    return []


def _locked_sizes(folder: Path, there: Collection[str]) -> list[int]:
    """Return the size of each output that a release's lock names; 0 alone where it can't be read."""
    try:
        about = read_json(read_regular(folder / RELEASE_FILE, most_bytes=TEXT_MAX_BYTES))
        name = about["lock"]
        text = read_regular(folder / name, most_bytes=TEXT_MAX_BYTES) if name in there else b""
        lock = parse_lock(text.decode("utf-8"), name, "")
    except (OSError, ValueError, LookupError, TypeError, RecursionError, UsageError):
        return [0]
    return [
        0,
        *(each.size_bytes for step in lock.steps.values() for each in step.outputs.values()),
    ]


def _recorded(path: Path) -> tuple[dict[str, str], list[ReleaseFault]]:
    """(path -> recorded sha256, lines that say nothing)."""
    recorded: dict[str, str] = {}
    try:
        content = read_regular(path, most_bytes=TEXT_MAX_BYTES)
        *lines, rest = content.decode("utf-8").split("\n")
    except FileNotFoundError:
        return {}, [ReleaseFault(SUMS_FILE, "is missing")]
    except (OSError, UnicodeDecodeError):
        return {}, [ReleaseFault(SUMS_FILE, "can't be read")]
    faults = []
    for number, line in enumerate([*lines, rest] if rest else lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in recorded:
            faults.append(ReleaseFault(SUMS_FILE, f"has a line that says nothing: {number}"))
        else:
            recorded[match[2]] = match[1]
    return recorded, faults
