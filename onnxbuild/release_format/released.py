"""A release that somebody else made: what it says of itself, read, and of the form that it must have."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.lock.model import Lock
from onnxbuild.lock.text import parse_lock
from onnxbuild.regular_files import read_regular
from onnxbuild.release_format.checksums import (
    TEXT_MAX_BYTES,
    Files,
    ReleaseFault,
    check_sums,
    read_hashed,
)
from onnxbuild.release_format.forms import following, json_bytes, printable, read_json
from onnxbuild.release_format.layout import (
    BOM_FILE,
    PROVENANCE_FILE,
    README_FILE,
    RELEASE_FILE,
    RESOLVED_FILE,
    SCHEMA_VERSION,
    SCHEMA_VERSION_KEY,
    SUMS_FILE,
)
from onnxbuild.release_format.release_schema import about_fault

_ALWAYS = (RELEASE_FILE, README_FILE, PROVENANCE_FILE, BOM_FILE, RESOLVED_FILE)
"""Files that every release has under the same name, besides SHA256SUMS."""


@dataclass(frozen=True, slots=True)
class Released:
    """A release whose files are what its checksums say.

    Attributes:
        folder: Where it is.
        files: Path in it -> digest.
        about: release.json; every path in it is that of a file or folder of the release.
        lock: Its lock.
    """

    folder: Path
    files: Mapping[str, Digest]
    about: Mapping[str, Any]
    lock: Lock

    def read(self, name: str) -> bytes:
        """The content of one of its files, as it was hashed.

        Raises:
            NotReproducibleError: As `Files.read`.
        """
        return read_hashed(self.folder, name, self.files[name])


def check_is_release(folder: Path, path: Path) -> None:
    """Refuse a folder that is not even a damaged release: nothing in it speaks of a release.json.

    Args:
        folder: Where it is laid open.
        path: As it was named.

    Raises:
        UsageError: It is no release.
    """
    if (folder / RELEASE_FILE).is_file() or _names_release(folder / SUMS_FILE):
        return
    inside = sorted(each.parent.name for each in folder.glob(f"*/{RELEASE_FILE}"))
    like = f", like {path / inside[0]}" if inside and folder == path else ""
    raise UsageError(
        f"{path} is no release: it has no {RELEASE_FILE}",
        fix=f"name the folder or the .tar archive that `onnxbuild release` wrote{like}",
    )


def _names_release(sums: Path) -> bool:
    try:
        lines = read_regular(sums, most_bytes=TEXT_MAX_BYTES).split(b"\n")
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it is there
    return any(line.endswith(b"  " + RELEASE_FILE.encode()) for line in lines)


def read_release(files: Files) -> Released:
    """Read what a release says of itself.

    Args:
        files: What is in it; its checksums must hold.

    Raises:
        NotReproducibleError: The checksums don't hold, its content is not described, or in a form
            that this version does not know.
    """
    if files.faults:
        raise NotReproducibleError(str(files.faults[0]))
    for name in _ALWAYS:
        if name not in files.digests:
            raise NotReproducibleError("it is missing", where=name)
    content = files.read(RELEASE_FILE)
    try:
        about = read_json(content)
    except ValueError as error:
        raise _unreadable(str(error)) from error
    version = about.get(SCHEMA_VERSION_KEY) if isinstance(about, dict) else None
    if isinstance(version, int) and version != SCHEMA_VERSION:
        raise NotReproducibleError(
            f"the release's description has version {version}; this onnxbuild reads {SCHEMA_VERSION}",
            where=RELEASE_FILE,
            fix="check it with the onnxbuild that made it",
        )
    fault = about_fault(about, files.digests)
    if fault:
        raise _unreadable(f"it {fault}" if fault.startswith(("has", "is")) else fault)
    if json_bytes(about) != content:
        raise _unreadable("it says it in other bytes than a release has")
    with following(about["lock"]):
        text = files.read(about["lock"]).decode("utf-8")
        try:
            lock = parse_lock(text, about["lock"], "fetch it again")
        except UsageError as error:
            raise NotReproducibleError(
                printable(error.what), where=error.where, fix=error.fix
            ) from error
    return Released(files.folder, files.digests, about, lock)


def read_whole_release(folder: Path, given: Path | str) -> Released:
    """Read a release of which a person named the folder or the archive, once all of its files are as released.

    Args:
        folder: Its folder, unpacked if need be.
        given: What the person named.

    Raises:
        UsageError: It is no release.
        NotReproducibleError: A file is not, or as `read_release`.
    """
    check_is_release(folder, Path(given))
    files = check_sums(folder)
    if files.faults:
        raise damaged(files.faults[0], given)
    return read_release(files)


def damaged(fault: ReleaseFault, given: Path | str) -> NotReproducibleError:
    """The error of a release with a file that is not as released, or a signature that does not hold.

    Args:
        given: What a person named.
    """
    command = f"onnxbuild verify {shlex.quote(str(given))}"
    return NotReproducibleError(f"the release is damaged: {fault}", where=str(given), fix=command)


def _unreadable(why: str) -> NotReproducibleError:
    return NotReproducibleError(
        f"it does not say what is in it: {printable(why)}", where=RELEASE_FILE
    )
