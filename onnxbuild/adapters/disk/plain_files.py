"""Check what is in a store before it is used: JSON, links, folders.

Whoever can write to a store can put a symbolic link in the place of a file or a folder, which leads
out of the store, and JSON without end. Files are opened by `core/regular_files.py`.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from onnxbuild.core.errors import StoreError

TYPE_CHECKING = False  # as in typing, which takes longer to import than this
if TYPE_CHECKING:
    from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Parse JSON that a store holds.

    Raises:
        ValueError: It is none, or is nested deeper than this program ever writes.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON that is nested too deeply") from error


def check_no_links(root: Path, path: Path) -> None:
    """Refuse a path of a store that leads out of it.

    Args:
        root: The store's folder; it may be a link itself, since the user names it.
        path: Below it; it need not be there.

    Raises:
        StoreError: One of the folders between the two, or the path itself, is a symbolic link.
    """
    at = root
    for part in path.relative_to(root).parts:
        at /= part
        if at.is_symlink():
            raise StoreError(
                f"{at} is a symbolic link; a store writes nowhere but below its own folder",
                fix=f"remove {at}, or choose another folder with --store FOLDER",
            )


def is_real_folder(path: str | Path) -> bool:
    """Return whether there is a folder, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
