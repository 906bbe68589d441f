"""Up to date at a glance: the identities of all that the last good run looked at.

A run's outcome is a function of its request and of the files, folders and packages that it looked
at. When every one of them still has the identity it had, running again would change nothing, and
that is decided here, before anything else is loaded. Whatever differs, the full decision is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import eq
from pathlib import Path

from onnxbuild import __version__
from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.statcache import ABSENT, hash_file, identity, settled
from onnxbuild.adapters.locate import cache_root
from onnxbuild.adapters.store.memos import note_use, read_memo, used_s, write_memo
from onnxbuild.adapters.toolchain.accelerator import gpu_models
from onnxbuild.adapters.toolchain.import_variables import import_variables
from onnxbuild.core.host_variables import HEADERS_VARIABLE

TYPE_CHECKING = False  # as in typing, which takes longer to import than a memo to be recalled
if TYPE_CHECKING:
    from typing import Any

    from onnxbuild.adapters.disk.statcache import StatCache

OWN_FOLDERS = ("ac", "cas", "out")  # of a store

CHANGED_MAX = 100  # more are decided with all that a build loads

_TOUCH_S = 24 * 3600.0  # often enough for garbage collection, which counts in days


def request_key(
    recipes: Sequence[str],
    only: Sequence[str],
    settings: Mapping[str, str],
    projects: Iterable[Path],
    store: Path,
    *,
    locked: bool = False,
    kinds: str = "",
) -> str:
    """Return what was asked of which machine, interpreter and step kinds: 64 hex digits."""
    asked = [
        __version__,
        sys.prefix,
        [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))],
        import_variables(os.environ),
        os.environ.get(HEADERS_VARIABLE),
        sorted({str(project) for project in projects}),
        [os.path.abspath(path) for path in recipes],
        list(only),
        dict(settings),
        os.path.expanduser("~"),
        locked,
        kinds,
        str(store),
        machine.python_build(),
        machine.host_class(),
        machine.driver_facts(),
        gpu_models(),
    ]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def recall(root: Path, request: str, environment: Mapping[str, str]) -> dict[str, Any] | None:
    """The summary of the last successful run, if nothing that it looked at has changed.

    Args:
        request: From `request_key`.
        environment: This process's variables; those that the recipes pass on must be as they were.
    """
    try:
        found, paths, identities = read_memo(root, request)
        summary = _checked(found)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if any(environment.get(name) != value for name, value in summary["environment"].items()):
        return None
    content = summary.pop("content")
    if not all(map(eq, map(identity, paths), identities)):
        seen = dict(zip(paths, identities, strict=True))
        if not _same_content(root, request, summary, seen, content):
            return None
    if time.time() - used_s(root, request) > _TOUCH_S:
        note_use(root, request)
        _note_environments(summary.get("environments", ()))
    return summary


def _same_content(
    root: Path,
    request: str,
    summary: Mapping[str, Any],
    seen: Mapping[str, str],
    content: Mapping[str, Sequence[str]],
) -> bool:
    """Return whether all that has another identity has the content that counted: an edited comment changes nothing.

    The memo then has the new identities.
    """
    from onnxbuild.adapters.toolchain.importable import ENTRIES_TAG, digest_of, entries_of
    from onnxbuild.adapters.toolchain.source_digest import SOURCE_TAG, source_digest

    makes: dict[str, Callable[[str], str | None]] = {
        "": hash_file,
        SOURCE_TAG: source_digest,
        ENTRIES_TAG: lambda folder: digest_of(entries_of(folder)),
    }
    looked_ns = time.time_ns()
    changed = {path: now for path, old in seen.items() if (now := identity(path)) != old}
    if len(changed) > CHANGED_MAX:
        return False
    for path in changed:
        tag, digest = content.get(path, ("", None))
        if digest is None or tag not in makes or makes[tag](path) != digest:
            return False
    if all(settled(now, looked_ns) for now in changed.values()):
        write_memo(root, request, {**summary, "content": content}, {**seen, **changed})
    return True


def content_of(
    digests: Mapping[str, Mapping[str, str]], bare: AbstractSet[str]
) -> dict[str, tuple[str, str]]:
    """Return path -> (tag, digest) of paths of which nothing but what follows from that digest was asked.

    Args:
        digests: Path -> tag -> digest, of all that was asked for.
        bare: Paths of which more was asked.
    """
    from onnxbuild.adapters.toolchain.importable import ENTRIES_TAG
    from onnxbuild.adapters.toolchain.source_digest import NAME_TAG, SOURCE_TAG

    found = {}
    for path, by_tag in digests.items():
        others = [tag for tag in by_tag if not tag.startswith(NAME_TAG)]
        if path in bare:
            continue
        if "" in by_tag:
            found[path] = "", by_tag[""]
        elif others in ([SOURCE_TAG], [ENTRIES_TAG]):
            found[path] = others[0], by_tag[others[0]]
    return found


def seen_paths(root: Path, request: str) -> list[str]:
    """Return the absolute paths that the last good run of a request looked at; none without a memo."""
    try:
        return read_memo(root, request)[1]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _note_environments(environments: Iterable[str]) -> None:
    """Set the last use of environments to now; paths from the store outside of this user's cache are ignored."""
    made = os.path.join(cache_root(), "environments")
    for folder in environments:
        if os.path.dirname(folder) == made:
            with contextlib.suppress(OSError):  # removed meanwhile
                # see virtual_environments.lock_path
                os.utime(f"{folder}.lock", follow_symlinks=False)


def remember(
    root: Path, request: str, summary: Mapping[str, Any], stats: StatCache, *, started_ns: int
) -> bool:
    """Keep what a successful run looked at; returns whether it could be kept.

    Args:
        root: The store's folder; what changes below it is this program's own doing.
        request: From `request_key`.
        summary: JSON, with the variables that recipes pass on under `environment`, and the folders of
            targets' environments, whose last use is noted, under `environments`.
        stats: All that was looked at.
        started_ns: Wall clock at the run's start. An input that changed later, or so shortly
            before that a second change could hide in the same clock tick, makes the memo unsafe.
    """
    own = tuple(f"{root / name}{os.sep}" for name in OWN_FOLDERS)
    for path, found in stats.seen.items():
        if path.startswith(own):
            continue
        if path in stats.restless:
            return False
        if found != ABSENT and not settled(found, started_ns):
            return False
    content = content_of(stats.digests, stats.bare)
    outside = {path: each for path, each in content.items() if not path.startswith(own)}
    return write_memo(root, request, {**summary, "content": outside}, stats.seen)


def _checked(summary: object) -> dict[str, Any]:
    """Return a summary; refuse what `remember` did not write.

    Raises:
        KeyError, TypeError: It is none of its summaries.
    """
    if not isinstance(summary, dict):
        raise TypeError("not a summary")
    folders = summary.get("environments", [])
    if not (
        isinstance(folders, list)
        and isinstance(summary["environment"], dict)
        and isinstance(summary["content"], dict)
        and all(
            isinstance(each, list) and len(each) == 2 and isinstance(each[0], str)  # noqa: PLR2004 - a tag and a digest
            for each in summary["content"].values()
        )
        and all(isinstance(folder, str) and "\0" not in folder for folder in folders)
    ):
        raise TypeError("not a summary")
    return summary
