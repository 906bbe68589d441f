"""Remove what killed runs left behind."""

from __future__ import annotations

import shutil
from pathlib import Path

from onnxbuild.adapters import clock
from onnxbuild.adapters.disk import locks
from onnxbuild.adapters.disk.short_temp import remove_short_name
from onnxbuild.core.errors import StoreError

_ABANDONED_S = 3600.0
"""Nothing writes to one temporary file for longer without touching it."""


def sweep(root: Path) -> None:
    """Remove what killed runs left below tmp/ and locks/, and their links in the system's temporary files.

    Args:
        root: The store's folder.
    """
    runs = {path.name.removeprefix("run-") for path in (root / "locks").glob("run-*")}
    runs |= {path.name for path in (root / "tmp").iterdir() if path.is_dir()}
    # Anybody with access to the store chooses the names of files.
    for run in runs - {"", ".", ".."}:
        lock_path = root / "locks" / f"run-{run}"
        try:
            lock = locks.try_lock(lock_path)
        except StoreError:
            continue  # another user's: let them sweep it
        if lock is not None:
            shutil.rmtree(root / "tmp" / run, ignore_errors=True)
            remove_short_name(root / "tmp" / run)
            lock_path.unlink(missing_ok=True)
            lock.release()
    for path in (root / "tmp").iterdir():
        if path.is_file() and clock.age_s(path) > _ABANDONED_S:
            path.unlink(missing_ok=True)
