"""A release as it was handed over, folder or archive, laid open as a folder."""

from __future__ import annotations

import errno
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from onnxbuild.adapters.disk.atomic_files import is_full
from onnxbuild.core.errors import BuildError, NotReproducibleError, UsageError
from onnxbuild.release_format.forms import printable

_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
_ODD = (ValueError, LookupError, OverflowError, EOFError, RecursionError)
"""Exceptions that tarfile lets through where headers make no sense."""
_NO_NAME = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EINVAL)


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The folder of a release; an archive is unpacked for as long as it is looked at.

    Raises:
        UsageError: There is nothing there, or it is neither a folder nor an archive.
        NotReproducibleError: The archive holds what no release holds: a link, a path that leads
            out of it, two files of one name.
        BuildError: There is no space to unpack it.
    """
    if path.is_dir():
        yield path
        return
    if not path.is_file():
        raise UsageError(f"there is no release {path}", fix="name its folder or its .tar archive")
    try:
        archive = tarfile.open(path, "r:")  # noqa: SIM115 - closed by the with below
    except (tarfile.TarError, *_ODD) as error:
        raise UsageError(
            f"{path} is no archive of a release: {printable(str(error))}",
            fix="name its folder or its .tar archive",
        ) from error
    with archive, tempfile.TemporaryDirectory(prefix="onnxbuild-verify-") as temporary:
        try:
            folder = _unpack(archive, path, Path(temporary))
        except OSError as error:
            if not is_full(error):
                raise
            raise BuildError(
                f"no space left in {tempfile.gettempdir()} to unpack {path}",
                fix="free some space there, set TMPDIR to a folder on another disk, or unpack it and name the folder",
            ) from error
        yield folder


def _unpack(archive: tarfile.TarFile, path: Path, target: Path) -> Path:
    """Write every member below `target`; returns the one folder that holds them all."""
    tops: set[str] = set()
    room_bytes = path.stat().st_size  # nothing is compressed: no more can be in it
    try:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or not name.parts:
                raise _refused(path, member, "leads out of the archive")
            tops.add(name.parts[0])
            if member.type not in _PLAIN or member.issparse():
                raise _refused(path, member, "is neither a file nor a folder")
            room_bytes -= member.size
            if member.size < 0 or room_bytes < 0:
                raise _refused(path, member, "is larger than the archive")
            _extract(archive, member, path, target / name)
    except (tarfile.TarError, *_ODD) as error:
        raise NotReproducibleError(
            f"the archive is damaged: {printable(str(error))}",
            where=str(path),
            fix="fetch it again",
        ) from error
    if len(tops) != 1:
        raise NotReproducibleError(
            f"the archive holds {len(tops)} folders; a release is one", where=str(path)
        )
    return target / tops.pop()


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path, place: Path) -> None:
    """Write one member.

    Raises:
        NotReproducibleError: Its name is that of another, or none that a file can have.
    """
    try:
        if member.isdir():
            place.mkdir(parents=True, exist_ok=True)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        copy = place.open("xb")
    except FileExistsError:
        raise _refused(path, member, "is there twice") from None
    except OSError as error:
        if error.errno in _NO_NAME:
            raise _refused(path, member, f"can't be made: {error.strerror}") from error
        raise
    source = archive.extractfile(member)
    assert source is not None  # a regular file has content
    with source, copy:
        shutil.copyfileobj(source, copy)


def _refused(path: Path, member: tarfile.TarInfo, why: str) -> NotReproducibleError:
    return NotReproducibleError(
        f"'{printable(member.name)}' {why}: no release holds such a thing", where=str(path)
    )
