"""SHA256SUMS against the files that are there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.statcache import hash_file
from onnxbuild.core.digest import Digest
from onnxbuild.release.layout import NOT_SUMMED, SUMS_FILE

_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it should be.

    Attributes:
        file: Path in the release.
        what: A sentence about it, without a subject.
    """

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file} {self.what}"


def check_sums(folder: Path) -> tuple[dict[str, Digest], list[Fault]]:
    """(path -> digest of every file that is there, what differs from SHA256SUMS)."""
    there, faults = _files(folder)
    recorded, bad_lines = _recorded(folder / SUMS_FILE)
    faults += bad_lines
    for path, sha256 in recorded.items():
        if path not in there:
            faults.append(Fault(path, "is missing"))
        elif there[path].sha256 != sha256:
            found = there[path].sha256
            faults.append(Fault(path, f"has changed: {found[:12]}, recorded as {sha256[:12]}"))
    faults += [
        Fault(path, "was added: SHA256SUMS does not name it")
        for path in there
        if path not in recorded and path not in NOT_SUMMED
    ]
    return there, faults


def _files(folder: Path) -> tuple[dict[str, Digest], list[Fault]]:
    found: dict[str, Digest] = {}
    faults = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            faults.append(Fault(name, "is neither a file nor a folder"))
        elif path.is_file():
            sha256 = hash_file(str(path))
            if sha256 is None:
                faults.append(Fault(name, "can't be read"))
            else:
                found[name] = Digest(sha256, path.stat().st_size)
    return found, faults


def _recorded(path: Path) -> tuple[dict[str, str], list[Fault]]:
    """(path -> recorded sha256, lines that say nothing)."""
    recorded: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}, [Fault(SUMS_FILE, "is missing")]
    except (OSError, UnicodeDecodeError):
        return {}, [Fault(SUMS_FILE, "can't be read")]
    faults = []
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in recorded:
            faults.append(Fault(SUMS_FILE, f"has a line that says nothing: {number}"))
        else:
            recorded[match[2]] = match[1]
    return recorded, faults
