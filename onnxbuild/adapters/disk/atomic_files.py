"""Files that are whole or absent: temp, write, fsync, rename, fsync the folder.

Files and folders in a folder that its group may write are opened to the group, whatever the umask
(as git's core.sharedRepository does), so that two users of a group can share a store.
"""

import contextlib
import errno
import itertools
import os
import stat
from pathlib import Path

from onnxbuild.core.errors import StoreError

_FULL_BYTES = 1 << 16  # a disk with less than this left takes no result
_SHOWN_CHARACTERS = 100
_counter = itertools.count()
_MARK = os.urandom(4).hex()  # process ids repeat across containers that share a store


def temp_name() -> str:
    """A file name that no other process uses, here or on another machine."""
    return f"{_MARK}-{os.getpid()}-{next(_counter)}"


def is_full(error: OSError) -> bool:
    """Return whether the disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def lack_of_room(error: OSError, path: Path | str) -> str:
    """Return what is used up where `is_full`: bytes, inodes, or the user's share.

    Args:
        error: What the system said.
        path: What was to be written; it need not be there.
    """
    if error.errno == errno.EDQUOT:
        return "your quota on the disk is used up"
    there = next((each for each in Path(path).absolute().parents if each.exists()), Path("/"))
    found = os.statvfs(there)
    if found.f_files > 0 and found.f_favail == 0:
        free = f"{found.f_bavail * found.f_frsize / 2**20:,.0f} MiB"
        return f"no inode left on the disk, which takes no more files ({free} are free)"
    return "no space left on the disk"


def has_no_room(folder: Path) -> bool:
    """Return whether a folder's disk is as good as full: of bytes, or of files where it counts them."""
    found = os.statvfs(folder)
    takes_no_files = found.f_files > 0 and found.f_favail == 0
    return takes_no_files or found.f_bavail * found.f_frsize < _FULL_BYTES


def store_error(error: OSError, path: Path | str) -> StoreError:
    """One clear sentence for what the operating system refused."""
    if is_full(error):
        return StoreError(
            f"{lack_of_room(error, path)} while writing {path}",
            fix="free some space (`onnxbuild cache gc` drops what nothing needs), then run again",
        )
    if error.errno == errno.EFBIG:
        return StoreError(
            f"can't write {path}: a file of its size is more than this process may write (`ulimit -f`), or than the disk takes",
            fix="`ulimit -f unlimited`, then run again",
        )
    if error.errno == errno.ENAMETOOLONG:
        text = os.fsdecode(path)
        part = max(text.split(os.sep), key=len)
        return StoreError(
            f"a path is too long for this system: it has {len(text):,} characters, and {len(part):,} in one part: "
            f"{text[:_SHOWN_CHARACTERS]}...",
            fix="use a shorter path",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError(
            f"can't write {path}: {os.strerror(error.errno)}",
            fix="make the folder writable, or choose another with --store FOLDER",
        )
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return StoreError(
            f"can't make {path}: a file is in its way",
            fix="move the file, or choose another folder with --store FOLDER",
        )
    if error.errno == errno.EXDEV:
        return StoreError(
            f"can't write {path}: it is on another filesystem than the rest of the store",
            fix="keep the store on one filesystem; choose where with --store FOLDER",
        )
    if error.errno in (errno.ENXIO, errno.ELOOP):
        what = "not a regular file" if error.errno == errno.ENXIO else "a symbolic link"
        return StoreError(
            f"{path} is {what}, where a file of the store belongs", fix=f"remove {path}"
        )
    if error.errno in (errno.EISDIR, errno.ENOTEMPTY):
        return StoreError(f"{path} is a folder, where a file belongs", fix=f"remove {path}")
    return StoreError(f"can't write {path}: {error.strerror or error}")


def output_error(error: OSError, path: Path | str) -> StoreError:
    """Return `store_error` for a file that a person named: its fix is another name, and not about the store."""
    found = store_error(error, path)
    if error.errno in (errno.EFBIG, errno.ENAMETOOLONG):
        return found
    if is_full(error):
        return StoreError(
            found.what, fix="send the output to a disk with free space, or free some"
        )
    return StoreError(found.what, fix="name a file in a folder that you may write")


def fsync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make `folder` and those above it, for the group where the one above is the group's.

    Raises:
        StoreError: It can't be made.
    """
    try:
        _make_folder(folder)
    except OSError as error:
        raise store_error(error, folder) from error


def _make_folder(folder: Path, tries: int = 3) -> None:
    """Make a folder; try again where the one above it goes meanwhile, but not for ever: /proc takes none."""
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise
        return
    except FileNotFoundError:
        if folder.parent == folder or tries == 0:
            raise
        _make_folder(folder.parent)
        _make_folder(folder, tries - 1)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        share(descriptor, folder.parent)
    finally:
        os.close(descriptor)


def share(descriptor: int, folder: Path) -> None:
    """Open a new file or folder to the group that may write the folder that it is in.

    Args:
        descriptor: Of the file or folder.
        folder: Where it is; one that everybody may write is not the group's.
    """
    above = os.stat(folder)
    if not above.st_mode & stat.S_IWGRP or above.st_mode & stat.S_IWOTH:
        return
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        return
    with contextlib.suppress(OSError):  # not a member: the mode is of use all the same
        if found.st_gid != above.st_gid:
            os.fchown(descriptor, -1, above.st_gid)
        wanted = found.st_mode | stat.S_IRGRP | stat.S_IWGRP
        if stat.S_ISDIR(found.st_mode):
            wanted |= stat.S_IXGRP | stat.S_ISGID
        if wanted != found.st_mode:
            os.fchmod(descriptor, stat.S_IMODE(wanted))


def write_atomically(path: Path, content: bytes, temp_folder: Path) -> None:
    """Put `content` at `path`; a reader sees all of it or what was there before.

    Args:
        path: Where it goes; its folder is made.
        content: The bytes.
        temp_folder: On the same filesystem.

    Raises:
        StoreError: It can't be written; `path` is as it was.
    """
    temp = temp_folder / temp_name()
    make_folder(path.parent)
    make_folder(temp_folder)
    try:
        try:
            with temp.open("xb") as file:
                file.write(content)
                file.flush()
                share(file.fileno(), path.parent)
                os.fsync(file.fileno())
            temp.replace(path)
            fsync_folder(path.parent)
        except OSError as error:
            raise store_error(error, path) from error
    finally:
        with contextlib.suppress(OSError):  # a read-only filesystem refuses even what is not there
            temp.unlink(missing_ok=True)


def write_output(path: Path, content: bytes) -> None:
    """Put `content` where a person asks for it, as `write_atomically` does if that is a file.

    A link stays, and the file that it names is written. A pipe or a terminal, such as /dev/stdout, is written to.

    Raises:
        StoreError: It can't be written.
        BrokenPipeError: It is a pipe that nobody reads.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)
        else:
            target = Path(os.path.realpath(path))
            write_atomically(target, content, target.parent)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error, path) from error
    except StoreError as error:
        cause = error.__cause__
        raise output_error(cause, path) if isinstance(cause, OSError) else error from cause
