"""Declared data files: paths and globs -> sorted files, and the folders whose listing decided."""

import errno
import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from onnxbuild.not_inputs import is_lock, store_above, what_excludes

FILES_MAX = 100_000
_MAGIC = re.compile(r"[*?[]")


class Glob:
    """Expands patterns and remembers every folder that it listed, and every link that it met.

    What onnxbuild and other tools make is no input: see `own_files`.

    Args:
        project: The project's root, absolute; its dist/ holds releases.

    Attributes:
        folders: Absolute; links among them, whose targets may change without a trace in the folder,
            and the files that mark a store or a virtual environment that was left out.
    """

    def __init__(self, project: Path | None = None) -> None:
        self._project = project
        self.folders: dict[Path, None] = {}
        self._listings: dict[Path, list[os.DirEntry[str]]] = {}

    def expand(self, pattern: str, folder: Path) -> list[Path]:
        """The files that `pattern` names, sorted; a folder stands for all the files below it.

        `*`, `?` and `[...]` match within a name, `**` any number of folders; names that start
        with a dot are matched by patterns that do, and `**` follows no links.

        Args:
            pattern: Relative to `folder`, absolute, or below `~`.
            folder: Absolute.

        Raises:
            ValueError: More than FILES_MAX files, or no path at all, or one in a store.
            OSError: A folder can't be listed.
        """
        start, magic = _split(pattern, folder)
        store = store_above(start)
        if store:
            raise ValueError(f"{store} is a store, which holds what is built and no inputs")
        found = list(self._matches(start, magic) if magic else self._literal(start))
        if len(found) > FILES_MAX:
            raise ValueError(f"the pattern names more than {FILES_MAX:,} files")
        return sorted(set(found))

    def anchor(self, pattern: str, folder: Path) -> Path:
        """The folder that a pattern starts from, and that holds all it names.

        Args:
            pattern: As for `expand`.
            folder: Absolute.
        """
        start, magic = _split(pattern, folder)
        return start if magic or start.is_dir() else start.parent

    def _literal(self, path: Path) -> Iterator[Path]:
        self.folders[path.parent] = None
        if path.is_symlink():
            self.folders[path] = None
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from self._matches(path, ("**",))

    def _matches(self, folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
        part, rest = parts[0], parts[1:]
        if part == "**" and rest[:1] == ("**",):
            yield from self._matches(folder, rest)
            return
        if part == "**":
            yield from self._matches(folder, rest or ("*",))
            for entry in self._list(folder):
                hidden = entry.name.startswith(".")
                is_own = entry.is_dir(follow_symlinks=False)
                if is_own and not hidden and self._may_enter(entry):
                    yield from self._matches(folder / entry.name, parts)
            return
        expression = re.compile(fnmatch.translate(part))
        for entry in self._list(folder):
            if entry.name.startswith(".") and not part.startswith("."):
                continue
            if not expression.match(entry.name):
                continue
            if entry.is_symlink():
                self.folders[folder / entry.name] = None
                if store_above(Path(entry.path)):
                    continue
            by_name = part == entry.name
            if rest and _is(entry.is_dir) and self._may_enter(entry, by_name=by_name):
                yield from self._matches(folder / entry.name, rest)
            elif not rest and _is(entry.is_file) and (by_name or not is_lock(folder / entry.name)):
                yield folder / entry.name

    def _may_enter(self, entry: os.DirEntry[str], *, by_name: bool = False) -> bool:
        """Return whether what is below a folder may be an input; `by_name`: the pattern writes its name."""
        folder = Path(entry.path)
        mark = what_excludes(folder, self._project, by_name=by_name)
        if mark not in {None, folder}:
            self.folders[mark] = None
        return mark is None

    def _list(self, folder: Path) -> list[os.DirEntry[str]]:
        if folder not in self._listings:
            self.folders[folder] = None
            if len(self._listings) > FILES_MAX:
                raise ValueError(f"the pattern visits more than {FILES_MAX:,} folders")
            try:
                with os.scandir(folder) as entries:
                    self._listings[folder] = sorted(entries, key=lambda entry: entry.name)
            except (FileNotFoundError, NotADirectoryError):
                self._listings[folder] = []
        return self._listings[folder]


def _is(kind: Callable[[], bool]) -> bool:
    """Return whether an entry is of a kind; a link in a circle is of none, as a dangling one."""
    try:
        return kind()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise


def _split(pattern: str, folder: Path) -> tuple[Path, tuple[str, ...]]:
    """(the fixed part, absolute; the parts from the first glob on)."""
    if "\0" in pattern:
        raise ValueError("the pattern holds a NUL character")
    written = Path(pattern).expanduser() if pattern.startswith("~") else Path(pattern)
    parts = written.parts
    fixed = next((n for n, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
    if ".." in parts[fixed:]:
        raise ValueError("`..` can't follow a glob")
    return Path(os.path.normpath(folder.joinpath(*parts[:fixed]))), parts[fixed:]
