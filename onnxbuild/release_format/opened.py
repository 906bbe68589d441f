"""A release as it was handed over, folder or archive, laid open as a folder."""

import errno
import io
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from onnxbuild.adapters.disk.atomic_files import is_full, lack_of_room
from onnxbuild.core.errors import BuildError, NotReproducibleError, UsageError
from onnxbuild.core.file_names import FILES_MAX, check_file_name, check_names_everywhere
from onnxbuild.release_format.forms import printable

_HEADERS_MAX_BYTES = 32 << 20
"""Limit for all headers of an archive: those of 10,000 files with the longest paths have 26 MB."""
_MEMBERS_MAX = 2 * FILES_MAX  # files, and their folders
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
    with _Headers(path) as file:
        try:
            archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - closed by the with below
        except (tarfile.TarError, *_ODD) as error:
            raise UsageError(
                f"{path} is no archive of a release: {printable(str(error))}",
                fix="name its folder or its .tar archive",
            ) from error
        with archive, tempfile.TemporaryDirectory(prefix="onnxbuild-verify-") as temporary:
            try:
                folder = _unpack(archive, file, path, Path(temporary))
            except OSError as error:
                if not is_full(error):
                    raise
                raise BuildError(
                    f"{lack_of_room(error, temporary)} of {tempfile.gettempdir()}, to unpack {path}",
                    fix="free some space there, set TMPDIR to a folder on another disk, or unpack it and name the folder",
                ) from error
            yield folder


class _Headers(io.FileIO):
    """An archive whose headers may be anybody's: tarfile takes as much memory as they ask for.

    Attributes:
        left_bytes: Bytes that may still be read.
    """

    left_bytes = _HEADERS_MAX_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        """Read some bytes.

        Raises:
            tarfile.ReadError: There are more than a release's headers have.
        """
        wanted = self.left_bytes + 1 if size is None or size < 0 else size
        if wanted > self.left_bytes:
            raise tarfile.ReadError(f"its headers have more than {_HEADERS_MAX_BYTES:,} bytes")
        self.left_bytes -= wanted
        return super().read(size) or b""


def _unpack(archive: tarfile.TarFile, file: _Headers, path: Path, target: Path) -> Path:
    """Write every member below `target`, once all headers were checked; returns the one folder that holds them all."""
    try:
        members = _checked(archive, path)
        file.left_bytes = path.stat().st_size
        for member in members:
            _extract(archive, member, path, target / PurePosixPath(member.name))
    except (tarfile.TarError, *_ODD) as error:
        raise NotReproducibleError(
            f"the archive is damaged: {printable(str(error))}",
            where=str(path),
            fix="fetch it again",
        ) from error
    return target / PurePosixPath(members[0].name).parts[0]


def _checked(archive: tarfile.TarFile, path: Path) -> list[tarfile.TarInfo]:
    """Return the members, all in one folder.

    Raises:
        NotReproducibleError: They are not those of a release.
    """
    members: list[tarfile.TarInfo] = []
    tops: set[str] = set()
    room_bytes = path.stat().st_size  # nothing is compressed: no more can be in it
    for member in archive:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts or not name.parts:
            raise _refused(path, member, "leads out of the archive")
        tops.add(name.parts[0])
        if archive.pax_headers or member.type not in _PLAIN or member.issparse():
            raise _refused(path, member, "is neither a file nor a folder")
        room_bytes -= member.size
        if member.size < 0 or room_bytes < 0:
            raise _refused(path, member, "is larger than the archive")
        members.append(member)
        if len(members) > _MEMBERS_MAX:
            raise _refused(path, member, f"is more than {_MEMBERS_MAX:,} files and folders")
    if len(tops) != 1:
        raise NotReproducibleError(
            f"the archive holds {len(tops)} folders; a release is one", where=str(path)
        )
    below = [(each, PurePosixPath(each.name).relative_to(next(iter(tops)))) for each in members]
    try:
        check_names_everywhere(str(name) for each, name in below if not each.isdir())
        for each, name in below:
            if each.isdir() and name.parts:
                check_file_name(str(name))
    except ValueError as error:
        raise NotReproducibleError(
            f"{printable(str(error))}: no release holds such a thing", where=str(path)
        ) from error
    return members


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
