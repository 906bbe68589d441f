"""Find which of some files and folders have changed, by their stat: works on every system and filesystem."""

import os
import stat
import time
from collections.abc import Iterable

from onnxbuild.adapters.disk.statcache import identity

LOOK_S = 0.2
"""Between two looks; longer where a look takes longer than a tenth of it."""
_SHARE = 10
_QUIET_S, _MOST_S = 0.15, 2.0
"""A save is over when nothing has changed for so long; what goes on and on is waited for so long at most."""
_TICK_NS = 20_000_000
"""Kernels date files by a clock that is up to so far behind."""
_NOT_MEANT = ("~", ".swp", ".swx", ".tmp", ".part", ".pyc")
_FOLDERS_NOT_MEANT = {"__pycache__"}


class Changes:
    """Files and folders that are looked at; a folder changes when a name in it comes or goes.

    Args:
        own: What this program makes itself: the store.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._known: dict[str, str | frozenset[str]] = {}
        self._next_s = 0.0

    def watch(self, paths: Iterable[str], since_ns: int) -> None:
        """Look at these from now on, and at no others.

        Args:
            paths: Absolute. What is known of one that was looked at before is kept.
            since_ns: Wall clock; a new one that was saved later counts as changed.
        """
        before, self._known = self._known, {}
        for path in paths:
            if path in before:
                self._known[path] = before[path]
            else:
                is_late = _is_late(path, since_ns - _TICK_NS, self._own)
                self._known[path] = "changed meanwhile" if is_late else _state(path)

    def found(self) -> list[str]:
        """Return what has changed since this was last asked; looks a few times a second."""
        began_s = time.monotonic()
        if began_s < self._next_s:
            return []
        changed = self._look()
        took_s = time.monotonic() - began_s
        self._next_s = began_s + max(LOOK_S, _SHARE * took_s)
        return changed

    def settled(self, changed: list[str]) -> list[str]:
        """Wait until nothing changes any more: editors save in several steps, `git checkout` many files.

        Args:
            changed: What was found first.

        Returns: All that changed, each once.
        """
        all_of_it = dict.fromkeys(changed)
        end_s = time.monotonic() + _MOST_S
        while time.monotonic() < end_s:
            time.sleep(_QUIET_S)
            more = self._look()
            if not more:
                break
            all_of_it |= dict.fromkeys(more)
        return list(all_of_it)

    def _look(self) -> list[str]:
        changed: dict[str, None] = {}
        for path, before in self._known.items():
            now = _state(path)
            if now == before:
                continue
            self._known[path] = now
            if isinstance(now, frozenset) and isinstance(before, frozenset):
                changed |= {os.path.join(path, name): None for name in sorted(now ^ before)}
            else:
                changed[path] = None
        changed.pop(self._own, None)
        return list(changed)


def now_ns() -> int:
    """Return the wall clock."""
    return time.time_ns()


def sources_below(folder: str, most: int = 5000) -> list[str]:
    """Return files that code and recipes are in, below a folder; hidden folders and environments are left out.

    Args:
        folder: Absolute.
        most: Files and folders at most: a whole disk is not looked at.
    """
    found: list[str] = []
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(
            each
            for each in folders
            if not each.startswith(".")
            and each not in {*_FOLDERS_NOT_MEANT, "node_modules"}
            and not os.path.exists(os.path.join(base, each, "pyvenv.cfg"))
            and not os.path.exists(os.path.join(base, each, "index.db"))  # a store
        )
        found.append(base)
        found += [
            os.path.join(base, each) for each in names if each.endswith((".py", ".yaml", ".yml"))
        ]
        if len(found) > most:
            break
    return found[:most]


def _state(path: str) -> str | frozenset[str]:
    """A file's identity; of a folder the names in it that a build could ask for."""
    try:
        names = os.listdir(path)
    except OSError:  # most often since it is a file
        return identity(path)
    return frozenset(filter(_is_meant, names))


def _is_meant(name: str) -> bool:
    """Return whether a build could ask for a name in a folder: it is nothing that editors or Python leave there."""
    return (
        not name.startswith((".", "#"))
        and not name.endswith(_NOT_MEANT)
        and name not in _FOLDERS_NOT_MEANT
    )


def _is_late(path: str, since_ns: int, own: str) -> bool:
    """Return whether a path was saved since; a file's change time counts, too: programs can set back only the other.

    Of a folder, what this program or Python has made there meanwhile is no change.
    """
    try:
        found = os.stat(path)
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return max(found.st_mtime_ns, found.st_ctime_ns) > since_ns
    if found.st_mtime_ns <= since_ns:
        return False
    try:
        late = [each for each in os.scandir(path) if _changed_ns(each) > since_ns]
    except OSError:
        return False
    ours = [each for each in late if each.path == own or not _is_meant(each.name)]
    # a folder in it is late by what was made in that one; with nothing late, a name was removed
    return not ours or any(each.is_file() for each in late if each not in ours)


def _changed_ns(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_ctime_ns
    except OSError:
        return 0
