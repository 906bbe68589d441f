"""Tools of steps that are no distribution: the C++ compiler, other programs, ONNX Runtime's headers."""

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence

from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.core.host_variables import HEADERS_VARIABLE
from onnxbuild.core.step import COMPILER, COMPILERS, CXX_HEADER, HEADERS, PROGRAM

_API_VERSION = re.compile(r"#define ORT_API_VERSION (\d+)")


def header_folder(
    environment: Mapping[str, str], digest: Callable[[str], str | None]
) -> str | None:
    """Return the folder that CXX_HEADER is in; None for none.

    That is the one that HEADERS_VARIABLE names, and no other; where it names none, next to Python, in
    /usr/local/include or in /usr/include.

    Args:
        digest: Path -> sha256 of a file's bytes; None if there is none.
    """
    named = environment.get(HEADERS_VARIABLE)
    roots = (f"{sys.prefix}/include", "/usr/local/include", "/usr/include")
    folders = [f"{root}/onnxruntime" for root in roots] if not named else [os.path.abspath(named)]
    return next((each for each in folders if digest(f"{each}/{CXX_HEADER}") is not None), None)


def installed_headers() -> str | None:
    """Return the folder of the headers now, for a process that keeps no digests; None for none."""
    return header_folder(os.environ, lambda path: path if os.path.isfile(path) else None)


def headers_digest(folder: str | None, stats: StatCache) -> str | None:
    """Return the state of all headers in a folder as `onnxruntime-headers VERSION sha256`; None for none.

    Args:
        folder: From `header_folder`.
    """
    if folder is None:
        return None
    stats.look(folder)
    names = sorted(name for name in os.listdir(folder) if name.endswith(".h"))
    listed = "\n".join(f"{name} {stats.digest(f'{folder}/{name}')}" for name in names)
    sha256 = hashlib.sha256(listed.encode()).hexdigest()
    return f"onnxruntime-headers {_version(folder)} {sha256}"


def _version(folder: str) -> str:
    """The first version of ONNX Runtime that has this API, as `1.21`."""
    try:
        with open(f"{folder}/onnxruntime_c_api.h", encoding="utf-8", errors="replace") as file:
            found = _API_VERSION.search(file.read())
    except OSError:
        found = None
    return f"1.{found[1]}" if found else "unknown"


def is_tool(name: str) -> bool:
    """Return whether a member of a toolchain is one of them."""
    return name in {COMPILER, HEADERS} or name.startswith(PROGRAM)


def tool_digest(name: str, stats: StatCache, folders: Sequence[str]) -> str | None:
    """Return a tool's state as three words, like a distribution's digest; None if it is not there.

    Args:
        name: As in a kind's `toolchain`.
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
