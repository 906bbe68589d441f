"""Find which entries of a folder can be imported, and under which name."""

import hashlib
import os
import sys
from collections.abc import Iterable, Sequence

from onnxbuild.adapters.kernel.kernel_watch import open_quietly

ENTRIES_TAG = "modules "
"""Tag in the stat cache of a digest of all that could be imported from a folder."""
_MODULE_SUFFIXES = (".py", ".pyd", ".so", ".pyc")


def entries_of(folder: str) -> tuple[str, ...]:
    """Return the entries of `folder` that could be imported; empty if it can't be read."""
    try:
        descriptor = open_quietly(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return ()
    try:
        with os.scandir(descriptor) as found:
            return tuple(entry.name for entry in found if _could_be_module(entry))
    except OSError:
        return ()
    finally:
        os.close(descriptor)


def _could_be_module(entry: os.DirEntry[str]) -> bool:
    _, dot, suffix = entry.name.partition(".")
    return f".{suffix}".endswith(_MODULE_SUFFIXES) if dot else entry.is_dir()


def digest_of(entries: Iterable[str]) -> str:
    """Return a digest of what `entries_of` gives."""
    return hashlib.sha256(
        "\0".join(sorted(entries)).encode("utf-8", "surrogateescape")
    ).hexdigest()


class Importable:
    """The entries of a folder that could satisfy an `import`.

    Args:
        entries: What the folder held at some moment.

    Attributes:
        digest: Of all entries.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._by_name: dict[str, list[str]] = {}
        for entry in entries:
            self._by_name.setdefault(entry.partition(".")[0], []).append(entry)
        self.digest = digest_of(entries)
        self._shadowing = sys.stdlib_module_names & self._by_name.keys()

    def of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the entries that could be one of some modules, sorted.

        Names of the standard library count, too: a file of such a name would shadow the module.
        """
        found = self._shadowing | (self._by_name.keys() & set(names))
        return tuple(sorted(entry for name in found for entry in self._by_name[name]))
