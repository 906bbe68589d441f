"""Resolve paths as the kernel does, and report the links on the way."""

import os

_LINKS_MAX = 40  # the kernel's own limit


def walked(path: str, *, follows: bool) -> tuple[str, list[tuple[str, str]]]:
    """Return the resolved path, and each link on the way with its target.

    Args:
        path: Absolute.
        follows: Whether a link at its end is followed; else it is only returned.
    """
    links: list[tuple[str, str]] = []
    rest = path.split("/")[::-1]
    real = ""
    while rest:
        part = rest.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            real = real.rpartition("/")[0]
            continue
        at = f"{real}/{part}"
        try:
            target = os.readlink(at)
        except (OSError, ValueError):
            real = at
            continue
        links.append((at, target))
        if (not rest and not follows) or len(links) > _LINKS_MAX:
            real = at
            continue
        if target.startswith("/"):
            real = ""
        rest += target.split("/")[::-1]
    return real or "/", links


def is_crooked(path: str) -> bool:
    """Return whether a path may be written in a shorter way."""
    return ".." in path or "//" in path or "/./" in path or path.endswith(("/", "/."))


def straightened(path: str) -> str:
    """Return the path without `.` and `..`, links in between followed."""
    while "/../" in f"{path}/":
        before, _, after = f"{path}/".partition("/../")
        parent = walked(before or "/", follows=True)[0]
        path = f"{os.path.dirname(parent)}/{after}".rstrip("/") or "/"
    return f"/{os.path.normpath(path).lstrip('/')}"


class RealFolders:
    """Resolver of links for many paths in the same folders: each folder is looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Return a path with links resolved.

        Args:
            path: Absolute and normalized; need not be there.
        """
        folder, _, name = path.rpartition("/")
        real = f"{self.of_folder(folder) if folder else ''}/{name}"
        return os.path.realpath(real) if os.path.islink(real) else real

    def of_folder(self, folder: str) -> str:
        """Return the path with links resolved, as `of` does, and remember it: for folders that no longer change."""
        real = self._known.get(folder)
        if real is None:
            real = self._known[folder] = self.of(folder)
        return real
