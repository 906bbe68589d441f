"""SHA256SUMS against the files that are there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import NotReproducibleError
from onnxbuild.core.file_names import check_names_everywhere
from onnxbuild.regular_files import read_regular
from onnxbuild.release_format.forms import printable, sums
from onnxbuild.release_format.layout import NOT_SUMMED, SUMS_FILE

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
        digests: Path in it -> digest, of every file that is there.
        faults: What differs from SHA256SUMS.
    """

    folder: Path
    digests: Mapping[str, Digest]
    faults: tuple[ReleaseFault, ...]

    def read(self, name: str) -> bytes:
        """The content of one of them.

        Raises:
            NotReproducibleError: It can't be read.
        """
        try:
            return read_regular(self.folder / name)
        except OSError as error:
            raise NotReproducibleError(
                f"it can't be read: {error.strerror}", where=printable(name)
            ) from error


def check_sums(folder: Path) -> Files:
    """Hash every file, and compare with SHA256SUMS."""
    there, faults = _files(folder)
    try:
        check_names_everywhere(there)
    except ValueError as error:
        faults.append(ReleaseFault(SUMS_FILE, f"names files that no release has: {error}"))
    faults += compare_sums(there, folder / SUMS_FILE)
    if not faults and there[SUMS_FILE] != Digest.of(sums(there)):
        faults.append(
            ReleaseFault(SUMS_FILE, "names these files in other bytes than a release has")
        )
    return Files(folder, there, tuple(faults))


def compare_sums(there: Mapping[str, Digest], file: Path) -> tuple[ReleaseFault, ...]:
    """Compare files with SHA256SUMS; return what differs.

    Args:
        there: Path -> digest.
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


def _files(folder: Path) -> tuple[dict[str, Digest], list[ReleaseFault]]:
    found: dict[str, Digest] = {}
    faults = []
    folders: dict[str, None] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not name.isprintable():
            faults.append(ReleaseFault(name, "has a name that no release's file has"))
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            faults.append(ReleaseFault(name, "is neither a file nor a folder"))
        elif path.is_dir():
            folders[name] = None
        else:
            sha256 = hash_file(str(path))
            if sha256 is None:
                faults.append(ReleaseFault(name, "can't be read"))
            else:
                found[name] = Digest(sha256, path.stat().st_size)
    needed = {str(parent) for name in found for parent in PurePosixPath(name).parents}
    faults += [ReleaseFault(name, "is an empty folder") for name in folders if name not in needed]
    return found, faults


def _recorded(path: Path) -> tuple[dict[str, str], list[ReleaseFault]]:
    """(path -> recorded sha256, lines that say nothing)."""
    recorded: dict[str, str] = {}
    try:
        *lines, rest = read_regular(path).decode("utf-8").split("\n")
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
