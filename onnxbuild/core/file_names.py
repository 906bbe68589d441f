"""Names of files in an artifact: relative, plain, each its own; whatever a store says of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def check_part(name: str) -> str:
    """Return `name` if it can be one entry of a folder.

    Raises:
        ValueError: It leads elsewhere, or names nothing.
    """
    if name in ("", ".", "..") or any(char in name for char in "/\\\0"):
        raise ValueError(f"{name!r} is not the name of a file")
    return name


def check_file_name(path: str) -> str:
    """Return `path` if it is a relative POSIX path that stays below the folder it starts in.

    Refused: absolute paths, empty parts, `.` and `..`, NUL, backslashes and drives (`C:`), which
    lead elsewhere on other systems.

    Raises:
        ValueError: It is anything else.
    """
    for number, part in enumerate(path.split("/")):
        check_part(part)
        if number == 0 and len(part) > 1 and part[1] == ":" and part[0].isalpha():
            raise ValueError(f"{path!r} starts with a drive")
    return path


def check_file_names(paths: Iterable[str]) -> None:
    """Check the names of all files of one folder.

    Raises:
        ValueError: One leads elsewhere, is there twice, or is a folder of another.
    """
    files: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        check_file_name(path)
        if path in files:
            raise ValueError(f"{path!r} is there twice")
        files.add(path)
        while "/" in path:
            path = path.rpartition("/")[0]  # noqa: PLW2901 - from the file up to the top
            folders.add(path)
    both = sorted(files & folders)
    if both:
        raise ValueError(f"{both[0]!r} is a file and a folder")


def check_names_everywhere(paths: Iterable[str]) -> None:
    """Check the names of files that may be written on any disk: some ignore case, some write accents in one way.

    Raises:
        ValueError: As `check_file_names`; or two names are one file on such a disk.
    """
    names = list(paths)
    check_file_names(names)
    files: dict[str, str] = {}
    for path in names:
        if (first := files.setdefault(same_on_disk(path), path)) != path:
            what = "differ only in case, or in how an accent is written"
            raise ValueError(f"{first!r} and {path!r} {what}: on some disks they are one file")
    for path in names:
        parts = path.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if (file := files.get(same_on_disk(folder))) is not None:
                raise ValueError(
                    f"{file!r} is a file, and {folder!r} a folder: on some disks they have one name"
                )


def same_on_disk(name: str) -> str:
    """Return what two names have in common that are one entry on a disk that ignores case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
