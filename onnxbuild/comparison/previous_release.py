"""A release against the one before it: a few lines, for the end of `onnxbuild release`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from onnxbuild.comparison.compare import compare
from onnxbuild.comparison.open_side import release_side
from onnxbuild.comparison.text import few_lines
from onnxbuild.core.errors import BuildError
from onnxbuild.release_format.about import version_order
from onnxbuild.release_format.forms import read_json
from onnxbuild.release_format.layout import RELEASE_FILE

_SHOWN = 6


def lines_about_previous(folder: Path, previous: Path | None) -> Iterator[str]:
    """Yield what differs from the previous release of the same recipe; nothing where there is none.

    Args:
        folder: The release's.
        previous: The previous one, if it is known; None for the one of the next lower version next to it.
    """
    before = previous or _previous(folder)
    if before is None:
        return
    command = f"onnxbuild diff {shlex.quote(_shown(before))} {shlex.quote(_shown(folder))}"
    try:
        with ExitStack() as stack:
            old, new = (release_side(path, _shown(path), stack) for path in (before, folder))
            found = compare(old, new)
    except BuildError as error:
        yield f"the difference to {_shown(before)} can't be shown: {error.what}"
        return
    if found.equal:
        yield f"no difference to {old.title}"
        return
    yield f"since {old.title}:"
    yield from (f"  {line}" for line in few_lines(found, _SHOWN))
    yield f"  all of it: {command}"


def _previous(folder: Path) -> Path | None:
    """The release of the same recipe with the next lower version in the same folder."""
    name, own = _title(folder)
    found = []
    for path in sorted(folder.parent.iterdir()):
        if path == folder or not (path / RELEASE_FILE).is_file():
            continue
        other, version = _title(path)
        if other == name and version and version_order(version) < version_order(own):
            found.append((version_order(version), path))
    return max(found)[1] if found else None


def _title(folder: Path) -> tuple[str, str]:
    """(name, version); empty where the release does not say so."""
    try:
        about = read_json((folder / RELEASE_FILE).read_bytes())
        return str(about["name"]), str(about["version"])
    except (OSError, ValueError, LookupError, TypeError):
        return "", ""


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
