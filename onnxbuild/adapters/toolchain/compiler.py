"""The C++ compiler that steps find on their PATH, as keys see it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from onnxbuild.core.step import COMPILERS


def compiler_digest(digest: Callable[[str], str | None], folders: Sequence[str]) -> str | None:
    """The first C++ compiler as `name program sha256`, like a distribution's digest; None for none.

    The driver's bytes stand for the whole compiler: they hold its version and its package's.

    Args:
        digest: Path -> sha256 of a file's bytes; None if there is none.
        folders: Where programs are looked for.
    """
    for name in COMPILERS:
        for folder in folders:
            path = f"{folder}/{name}"
            found = digest(path)
            if found is not None:
                return f"{name} {os.path.basename(os.path.realpath(path))} {found}"
    return None
