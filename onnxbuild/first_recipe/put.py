"""Put new files in their place: all of them or none, and never over what is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import fsync_folder, is_full, store_error, temp_name
from onnxbuild.core.errors import BuildError, UsageError


def refuse_existing(path: Path) -> None:
    """See that nothing is at a path.

    Raises:
        UsageError: Something is.
    """
    if os.path.lexists(path):
        raise UsageError(
            f"{path} exists, and nothing is overwritten",
            fix=f"write another with `-o OTHER.yaml`, or remove it: `rm {path}`",
        )


def put_files(files: Mapping[Path, str]) -> None:
    """Write files, with the folders above them; after an error nothing of it is left.

    Args:
        files: Path -> content.

    Raises:
        UsageError: Something is at one of the paths, or nothing can be written there.
        StoreError: The disk is full.
    """
    put: list[Path] = []
    folders: list[Path] = []
    try:
        for path, content in files.items():
            try:
                folders += _make_folders(path.parent)
                _put_file(path, content)
            except OSError as error:
                raise _refused(error, path) from error
            put.append(path)
    except BaseException:
        for path in put:
            path.unlink(missing_ok=True)
        for folder in reversed(folders):
            folder.rmdir()
        raise


def _refused(error: OSError, path: Path) -> BuildError:
    """The error by the path that was asked for: drafts have names that nobody knows."""
    if is_full(error):
        return store_error(error, path)
    return UsageError(
        f"can't write {path}: {error.strerror or error}",
        fix="write into another folder, or make this one writable",
    )


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it; return the new ones, the outermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
    return missing[::-1]


def _put_file(path: Path, content: str) -> None:
    draft = path.parent / f".{temp_name()}"
    try:
        with draft.open("xb") as file:
            file.write(content.encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails where something is
        except FileExistsError:
            refuse_existing(path)
            raise
        except (PermissionError, NotImplementedError):  # a filesystem without links
            refuse_existing(path)
            draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    fsync_folder(path.parent)
