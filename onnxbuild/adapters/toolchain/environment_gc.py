"""Keep environments of lists as long as they are used: a lock during a build, a date for afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import temp_name
from onnxbuild.adapters.disk.locks import FileLock, try_lock, wait_lock
from onnxbuild.adapters.toolchain.virtual_environments import (
    MadeEnvironment,
    lock_path,
    made_environments,
    used_s,
)
from onnxbuild.core.errors import StoreError


def hold(folder: str) -> FileLock:
    """Keep an environment from being removed, and note that it is used.

    Args:
        folder: The environment's; one that is being made is waited for.

    Returns: The lock; of a cache that can't be written, one that holds nothing.
    """
    try:
        lock = wait_lock(Path(lock_path(folder)), shared=True)
    except StoreError:
        return FileLock(None)
    note_use([folder])
    return lock


def note_use(folders: Iterable[str]) -> None:
    """Note that environments are used now."""
    for folder in folders:
        with contextlib.suppress(OSError):
            os.utime(lock_path(folder))


def collect_environments(
    *, keep_s: float, grace_s: float, dry_run: bool = False
) -> list[MadeEnvironment]:
    """Remove the environments that no run of any project has used for long.

    Args:
        keep_s: How long one is kept after its last use.
        grace_s: Nothing younger is removed.
        dry_run: Remove none, and return those that would be.

    Returns: Those that were removed; one that a build is using stays.
    """
    old_s = time.time() - max(keep_s, grace_s)
    if dry_run:
        return [each for each in made_environments() if used_s(each.folder) < old_s]
    return [each for each in made_environments() if _remove(each.folder, old_s)]


def _remove(folder: str, old_s: float) -> bool:
    if used_s(folder) >= old_s:
        return False
    with contextlib.suppress(StoreError, OSError):  # another user's
        lock = try_lock(Path(lock_path(folder)))
        if lock is None:
            return False
        try:
            if used_s(folder) >= old_s:  # a build has come and gone
                return False
            gone = f"{folder}.{temp_name()}.tmp"
            os.rename(folder, gone)  # so that one that is there is whole
            shutil.rmtree(gone, ignore_errors=True)
            os.unlink(lock_path(folder))
        finally:
            lock.release()
        return True
    return False
