"""Keep environments of lists as long as they are used: a lock during a build, a date for afterwards."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
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


RECENT = "recent"
BUSY = "busy"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class CollectedEnvironment:
    """An environment, and what becomes of it.

    Attributes:
        made: The environment.
        kept: Why it stays: RECENT, it was used not long ago; BUSY, a build is using it; REFUSED, the
            system does not let this user remove it. Empty if it is removed.
    """

    made: MadeEnvironment
    kept: str


def collect_environments(*, keep_s: float, dry_run: bool = False) -> list[CollectedEnvironment]:
    """Remove the environments that no run of any project has used for long.

    Args:
        keep_s: How long one is kept after its last use.
        dry_run: Remove none, and say what would become of them.

    Returns: All of them, in the order of their folders.
    """
    old_s = time.time() - keep_s
    return [
        CollectedEnvironment(made, _collect(made.folder, old_s, dry_run=dry_run))
        for made in made_environments()
    ]


def _collect(folder: str, old_s: float, *, dry_run: bool) -> str:
    """Remove an environment that was last used before a moment; return why it stays, if it does."""
    if used_s(folder) > old_s:
        return RECENT
    try:
        lock = try_lock(Path(lock_path(folder)))
        if lock is None:
            return BUSY
        try:
            if used_s(folder) > old_s:  # a build has come and gone
                return RECENT
            if dry_run:
                return "" if os.access(os.path.dirname(folder), os.W_OK) else REFUSED
            gone = f"{folder}.{temp_name()}.tmp"
            os.rename(folder, gone)  # so that one that is there is whole
            shutil.rmtree(gone, ignore_errors=True)
            os.unlink(lock_path(folder))
        finally:
            lock.release()
    except (StoreError, OSError):  # another user's
        return REFUSED
    return ""
