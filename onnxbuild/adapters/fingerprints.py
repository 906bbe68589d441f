"""The state of files, import folders and installed packages, as keys see it."""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.adapters import machine
from onnxbuild.adapters.distributions import Distributions
from onnxbuild.adapters.statcache import StatCache
from onnxbuild.core.action import Action, Listing, Observed

_MODULE_SUFFIXES = (".py", ".pyd", ".so", ".pyc")


class DiskFingerprints:
    """Fingerprints of real files.

    Args:
        project: Relative paths start here.
        stats: Digests by stat identity.
        distributions: What is installed.
    """

    def __init__(self, project: Path, stats: StatCache, distributions: Distributions) -> None:
        self._project = str(project)
        self._stats = stats
        self._distributions = distributions

    def _absolute(self, path: str) -> str:
        return os.path.join(self._project, path)

    def file(self, path: str) -> str | None:
        """sha256 of a file's bytes; None if it can't be read."""
        return self._stats.digest(self._absolute(path))

    def source(self, path: str) -> str | None:
        """sha256 of a Python file's syntax tree, of its bytes if it does not parse."""
        tag = f"ast {sys.implementation.cache_tag} "
        return self._stats.digest(self._absolute(path), tag, source_digest)

    def listing(self, folder: str, names: Sequence[str]) -> Listing:
        """Which entries of `folder` could be one of the modules `names`."""
        absolute = self._absolute(folder)
        self._stats.look(absolute)
        return Listing(tuple(names), importable(absolute, names))

    def distribution(self, name: str) -> str | None:
        """Digest of an installed distribution; None if it is not installed."""
        return self._distributions.digest(name)

    def python(self) -> str:
        """The Python build."""
        return machine.python_build()

    def host(self) -> Mapping[str, str]:
        """What of this machine can change numbers."""
        return machine.host_class()

    def still(self, action: Action, observed: Observed) -> bool:
        """Whether all files of both are now as they say."""
        return (
            all(self.file(path) == sha for path, sha in action.files.items())
            and all(self.source(path) == sha for path, sha in observed.sources.items())
            and all(self.file(path) == sha for path, sha in observed.data.items())
            and all(
                self.listing(folder, listing.names) == listing
                for folder, listing in observed.listings.items()
            )
        )


def importable(folder: str, names: Sequence[str]) -> tuple[str, ...]:
    """Entries of `folder` that could satisfy `import` of one of `names`, sorted.

    A name counts whether it is looked for or is a module of the standard library, which a file of
    that name would shadow.
    """
    wanted = frozenset(names)
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return ()
    found = []
    for entry in entries:
        stem, dot, suffix = entry.name.partition(".")
        if stem not in wanted and stem not in sys.stdlib_module_names:
            continue
        if (dot and f".{suffix}".endswith(_MODULE_SUFFIXES)) or (not dot and entry.is_dir()):
            found.append(entry.name)
    return tuple(sorted(found))


def source_digest(path: str) -> str | None:
    """sha256 of a file's syntax tree without positions; of its bytes if it does not parse.

    Type comments count, since TorchScript reads them; all other comments and layout do not.
    """
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    return source_digest_of(content)


def source_digest_of(content: bytes) -> str:
    """As `source_digest`, of a file's bytes."""
    try:
        tree = ast.dump(ast.parse(content, type_comments=True))
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(b"bytes " + content).hexdigest()
    return hashlib.sha256(f"tree {tree}".encode("utf-8", "surrogatepass")).hexdigest()
