"""Which commit a release is of, whether that is all of it, and the one time that it may know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters import git, locate
from onnxbuild.core.action import NO_FILE
from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.lock.model import Lock

EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"
"""Seconds since 1970; https://reproducible-builds.org/specs/source-date-epoch/."""

NO_EPOCH_S = 315_532_800  # 1980-01-01, the first day that a zip file can name
_EPOCH_MAX_S = 253_402_300_799  # the last second of the year 9999
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Source:
    """Where a release comes from.

    Attributes:
        commit: In full; None if there is none.
        changed: Files that are not as the commit has them, relative to the repository's root.
        epoch_s: The time that all its files get, in seconds since 1970.
        notices: What whoever releases should know.
    """

    commit: str | None
    changed: tuple[str, ...]
    epoch_s: int
    notices: tuple[str, ...] = ()

    @property
    def dirty(self) -> bool:
        """Whether the commit does not tell what was built."""
        return self.commit is None or bool(self.changed)


def used_files(lock: Lock, project: Path) -> Iterator[Path]:
    """Files of the project that a lock's build used; those elsewhere are in no commit of it."""
    sources: Mapping[str, str] = lock.sources
    for name in sorted({*sources, *(f for f, digest in lock.files.items() if digest != NO_FILE)}):
        if not name.startswith(("<", "/")):
            yield project / name


def look_at_source(project: Path, used: Iterable[Path], *, allow_dirty: bool) -> Source:
    """The commit that a project is at.

    Args:
        project: The project's root.
        used: Files that the release is made from, absolute.
        allow_dirty: Take it as it is.

    Raises:
        NotReproducibleError: The commit does not tell what would be built.
        UsageError: SOURCE_DATE_EPOCH is no time.
        BuildError: git refuses.
    """
    checkout = git.look(project, used)
    if checkout.dirty and not allow_dirty:
        raise _refused(checkout, project)
    notices = []
    if checkout.dirty:
        what = checkout.why_none or f"{len(checkout.changed)} files differ from the commit"
        notices.append(f"nobody else can make this release again: {what}")
    epoch_s = _epoch_s()
    if epoch_s is None:
        epoch_s = checkout.committed_s
    if epoch_s is None:
        epoch_s = NO_EPOCH_S
        notices.append(f"no commit and no {EPOCH_VARIABLE}: all files are of 1980-01-01")
    return Source(checkout.commit, checkout.changed, epoch_s, tuple(notices))


def _refused(checkout: git.Checkout, project: Path) -> NotReproducibleError:
    if checkout.commit is None:
        return NotReproducibleError(
            f"{checkout.why_none}, so no commit tells what a release was made from",
            where=str(project),
            fix="commit the project, or add --allow-dirty: the release then says so",
        )
    shown = ", ".join(checkout.changed[:_SHOWN])
    more = len(checkout.changed) - _SHOWN
    return NotReproducibleError(
        f"these files are not as commit {checkout.commit[:12]} has them: {shown}"
        f"{f' and {more} more' if more > 0 else ''}",
        where=str(project),
        fix="commit them, or add --allow-dirty: the release then says so",
    )


def _epoch_s() -> int | None:
    text = locate.environment().get(EPOCH_VARIABLE)
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) > _EPOCH_MAX_S:
        raise UsageError(
            f"{EPOCH_VARIABLE} is '{text}'; expected seconds since 1970",
            fix=f"unset {EPOCH_VARIABLE}: the commit's time is taken then",
        )
    return int(text)
