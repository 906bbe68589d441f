"""Replace a folder in one call: its successor is made elsewhere, then the two exchange their names.

Each replacement has a staging folder with `tree`: first the successor, and after the exchange the
predecessor. Either tree is treated alike: the program's own files in it are removed, all other files
are moved to the visible folder. So the run after a kill need not know how far the killed process got.

Where the filesystem can't exchange, the predecessor is renamed to `old` first. A process that dies
then leaves no visible folder until the next run puts `old` back.
"""

import contextlib
import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import (
    fsync_folder,
    make_folder,
    temp_name,
    write_atomically,
)
from onnxbuild.adapters.disk.linux_files import exchange
from onnxbuild.adapters.disk.plain_files import check_no_links, is_real_folder, parse_json
from onnxbuild.adapters.store.laid_files import (
    Own,
    is_file_inside,
    move,
    others,
    remove_own,
    take_along,
)
from onnxbuild.core.errors import StoreError
from onnxbuild.core.file_names import check_file_name
from onnxbuild.regular_files import read_regular

_TREE, _OLD, _NAMES, _REPLACED = "tree", "old", "names.json", "replaced"
_KEPT_S = 60.0  # a reader that has the predecessor open reads it to its end
_STAYS_PUT = (errno.EXDEV, errno.EBUSY)  # a folder of a lower layer (overlayfs), a mount point
_TRIES = 3


def replace_folder(
    folder: Path, staging: Path, fill: Callable[[Path], None], *, own: Collection[str]
) -> None:
    """Put a new folder in the place of another, with all files in it that are not the program's.

    Args:
        folder: The visible folder; it need not be there.
        staging: The folder of staging folders: on the same filesystem, hidden.
        fill: Makes the program's files in an empty folder, all of them durable.
        own: Names of the files that the program made in either folder; others stay.

    Raises:
        OSError: It can't be done; `folder` is the old one or the new one, whole.
        StoreError: Likewise.
    """
    staged = staging / temp_name()
    names = Own.of(own)
    make_folder(staged)
    try:
        tree = staged / _TREE
        make_folder(tree)
        fill(tree)
        if os.path.lexists(folder):
            take_along(folder, tree, names)
            _write_names(staged, own)
            _make_durable(tree)
            _change_places(tree, folder, staged, names)
            _hand_over(staged, folder, names, drop=False)
            (staged / _REPLACED).touch()
        else:
            make_folder(folder.parent)
            _make_durable(tree)
            tree.rename(folder)
            fsync_folder(folder.parent)
            shutil.rmtree(staged)
    except BaseException:  # Ctrl-C included
        # The first error is the one to report; the next run finishes what fails here.
        with contextlib.suppress(OSError, StoreError):
            _finish(staged, folder)
        raise


def tidy(folder: Path, staging: Path, quarantine: Path, *, keep_s: float = _KEPT_S) -> bool:
    """Finish what killed processes left, and remove predecessors older than `keep_s`.

    Args:
        staging: As for `replace_folder`; whoever calls this holds the folder's lock.
        quarantine: Where a staging folder goes whose list of the program's own files is damaged.

    Returns: Whether a replacement had been interrupted.

    Raises:
        OSError: It can't be done.
    """
    if not is_real_folder(staging):
        return False
    was_interrupted = False
    for staged in sorted(staging.iterdir()):
        if not is_real_folder(staged):
            staged.unlink()
            continue
        age_s = _age_s(staged / _REPLACED)
        if age_s is not None and age_s < keep_s:
            continue
        was_interrupted |= age_s is None
        try:
            _finish(staged, folder)
        except (ValueError, TypeError):  # names.json is damaged
            make_folder(quarantine)
            staged.rename(quarantine / f"{folder.name}.{time.time_ns()}")
        except OSError:
            if age_s is None:
                raise  # else it is only space, and another user's
    with contextlib.suppress(OSError):
        staging.rmdir()  # if it is empty
    return was_interrupted


def _age_s(mark: Path) -> float | None:
    try:
        return abs(time.time() - os.lstat(mark).st_mtime)
    except OSError:
        return None


def _finish(staged: Path, folder: Path) -> None:
    """Put back a folder that was renamed away, move files that are not ours, remove the rest."""
    old = staged / _OLD
    if is_real_folder(old) and not os.path.lexists(folder):
        old.rename(folder)
        fsync_folder(folder.parent)
    if os.path.lexists(staged / _NAMES):  # else nothing was exchanged: all in it is ours
        own = Own.of(_names(staged))
        for tries_left in range(_TRIES, 0, -1):
            try:
                _hand_over(staged, folder, own, drop=True)
                break
            except OSError:  # such as a file that was made between two listings
                if tries_left == 1:
                    raise
    shutil.rmtree(staged)


def _write_names(staged: Path, own: Collection[str]) -> None:
    write_atomically(staged / _NAMES, json.dumps(sorted(own)).encode(), staged)


def _names(staged: Path) -> list[str]:
    names = parse_json(read_regular(staged / _NAMES))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("not a list of names")
    for name in names:
        check_file_name(name)
    return names


def _make_durable(tree: Path) -> None:
    for base, _, _ in os.walk(tree, topdown=False):
        fsync_folder(Path(base))


def _hand_over(staged: Path, folder: Path, own: Own, *, drop: bool) -> None:
    """Move files that are not ours to the visible folder; remove ours if `drop`, else keep them for readers."""
    for name in (_TREE, _OLD):
        tree = staged / name
        if not is_real_folder(tree):
            continue
        for below, entry in list(others(tree, own)):
            target = folder / below
            check_no_links(folder.parent, target.parent)
            make_folder(target.parent)
            move(entry.path, target)
        if drop:
            remove_own(tree, own)


# --- the moment ---------------------------------------------------------------------------------


def _change_places(tree: Path, folder: Path, staged: Path, own: Own) -> None:
    try:
        if not exchange(tree, folder):
            replace_in_two(tree, folder, staged)
    except OSError as error:
        if error.errno not in _STAYS_PUT:
            raise
        _replace_inside(tree, folder, own)
    fsync_folder(folder.parent)


def replace_in_two(tree: Path, folder: Path, staged: Path) -> None:
    """Take the old folder away, then put the new one there: for filesystems without exchange."""
    folder.rename(staged / _OLD)
    tree.rename(folder)


def _replace_inside(tree: Path, folder: Path, own: Own) -> None:
    """File by file, as the last resort: this folder can't be moved."""
    for name in sorted(own.files):
        source, target = tree / name, folder / name
        check_no_links(folder.parent, target.parent)
        if source.exists():
            make_folder(target.parent)
            source.replace(target)
        elif is_file_inside(folder, name):
            target.unlink()
