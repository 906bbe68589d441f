"""Tools of steps that are no distribution: the C++ compiler, other programs, ONNX Runtime's headers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.headers import header_folder, headers_digest
from onnxbuild.core.step import COMPILER, COMPILERS, HEADERS, PROGRAM


def is_tool(name: str) -> bool:
    """Return whether a member of a toolchain is one of them."""
    return name in {COMPILER, HEADERS} or name.startswith(PROGRAM)


def tool_digest(name: str, stats: StatCache, folders: Sequence[str]) -> str | None:
    """Return a tool's state as three words, like a distribution's digest; None if it is not there.

    Args:
        name: As in a kind's `toolchain`.
        stats: Digests of files.
        folders: Where steps find programs.
    """
    if name == COMPILER:
        return compiler_digest(stats.digest, folders)
    if name == HEADERS:
        return headers_digest(header_folder(os.environ, stats.digest), stats)
    return _program_digest(name[len(PROGRAM) : -1], stats.digest, folders)


def tool_folder(name: str, stats: StatCache) -> str | None:
    """Return where a tool is, if steps don't find it on their PATH: the headers."""
    return header_folder(os.environ, stats.digest) if name == HEADERS else None


def compiler_digest(digest: Callable[[str], str | None], folders: Sequence[str]) -> str | None:
    """Return the first C++ compiler as `name program sha256`; None for none.

    The driver's bytes stand for the whole compiler: they hold its version and its package's.

    Args:
        digest: Path -> sha256 of a file's bytes; None if there is none.
        folders: Where programs are looked for.
    """
    found = (_program_digest(name, digest, folders) for name in COMPILERS)
    return next(filter(None, found), None)


def _program_digest(
    name: str, digest: Callable[[str], str | None], folders: Sequence[str]
) -> str | None:
    for folder in folders:
        path = f"{folder}/{name}"
        found = digest(path)
        if found is not None:
            return f"{name} {os.path.basename(os.path.realpath(path))} {found}"
    return None
