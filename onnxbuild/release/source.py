"""Source of a release: its commit, whether that is all of it, and the one time that it may know."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onnxbuild.adapters import git, locate
from onnxbuild.core.action import NO_FILE
from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.core.places import real_path
from onnxbuild.lock.model import Lock
from onnxbuild.release_format.about import EPOCH_MAX_S, ReleaseSource

EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"
"""Seconds since 1970; https://reproducible-builds.org/specs/source-date-epoch/."""

NO_EPOCH_S = 315_532_800  # 1980-01-01, the first day that a zip file can name
_SHOWN = 5
_EPOCH_SHOWN = 40


def used_files(lock: Lock, project: Path, folders: Mapping[str, str]) -> dict[str, Path]:
    """Files that a lock's build used: name in the lock -> where it is on this machine.

    Args:
        folders: Name of a folder outside the project -> where it is.

    Raises:
        NotReproducibleError: Nobody knows where one is.
    """
    found = {}
    for name in sorted(
        {*lock.sources, *(f for f, digest in lock.files.items() if digest != NO_FILE)}
    ):
        if name.endswith("/"):  # what a folder holds; its files are named where they are used
            continue
        path = real_path(name, folders)
        if path.startswith("<"):
            raise NotReproducibleError(
                f"the lock names {name}, and nothing here says where that is",
                fix="lock the recipe again",
            )
        found[name] = project / path
    return found


def look_at_source(
    project: Path, used: Mapping[str, Path], shipped: Iterable[Path], *, allow_dirty: bool
) -> ReleaseSource:
    """The commit that a project is at.

    Args:
        used: Files that the release is made from: name in the lock -> absolute path.
        shipped: Files that the release holds as they are, absolute.
        allow_dirty: Take it as it is.

    Raises:
        NotReproducibleError: The commit differs from what would be built.
        UsageError: SOURCE_DATE_EPOCH is no time.
        BuildError: git refuses.
    """
    shipped = tuple(shipped)
    checkout = git.look(project, (*shipped, *used.values()), shipped)
    if checkout.dirty and not allow_dirty:
        raise _refused(checkout, project)
    beyond = set(checkout.beyond)
    outside = tuple(name for name, path in used.items() if path in beyond)
    notices = []
    if checkout.dirty:
        what = checkout.why_none or f"{_files(len(checkout.changed))} from the commit"
        notices.append(f"nobody else can make this release again: {what}")
    if outside:
        notices.append(
            f"no commit has what is outside of the repository: {_shown(outside)}; whoever makes "
            "this release again needs the same files"
        )
    epoch_s = _epoch_s()
    if epoch_s is None:
        epoch_s = checkout.committed_s
    if epoch_s is None:
        epoch_s = NO_EPOCH_S
        notices.append(f"no commit and no {EPOCH_VARIABLE}: all files are of 1980-01-01")
    return ReleaseSource(checkout.commit, checkout.changed, epoch_s, outside, tuple(notices))


def _refused(checkout: git.Checkout, project: Path) -> NotReproducibleError:
    if checkout.commit is None:
        return NotReproducibleError(
            f"{checkout.why_none}, so no commit records what a release was made from",
            where=str(project),
            fix="commit the project, or add --allow-dirty: the release then says so",
        )
    fix = "commit them, or add --allow-dirty: the release then says so"
    if checkout.converted == checkout.changed:
        fix = (
            "git converts them on the way out (core.autocrlf, or eol, ident, filter in "
            ".gitattributes): write `*.yaml -text` and `*.lock -text` into .gitattributes, and "
            "check them out again"
        )
    return NotReproducibleError(
        f"these files are not as commit {checkout.commit[:12]} has them: "
        f"{_shown(checkout.changed)}",
        where=str(project),
        fix=fix,
    )


def _shown(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return f"{', '.join(names[:_SHOWN])}{f' and {more} more' if more > 0 else ''}"


def _files(count: int) -> str:
    return f"{count} file{' differs' if count == 1 else 's differ'}"


def _epoch_s() -> int | None:
    text = locate.environment().get(EPOCH_VARIABLE)
    if not text:
        return None
    digits = text.lstrip("0") or "0"
    # Not converted before its length is known: `int` refuses more than 4,300 digits.
    is_time = text.isascii() and text.isdigit() and len(digits) <= len(str(EPOCH_MAX_S))
    if not is_time or int(digits) > EPOCH_MAX_S:
        shown = text if len(text) <= _EPOCH_SHOWN else f"{text[:_EPOCH_SHOWN]}..."
        raise UsageError(
            f"{EPOCH_VARIABLE} is '{shown}'; expected seconds since 1970, up to the year 9999",
            fix=f"unset {EPOCH_VARIABLE}: the commit's time is taken then",
        )
    return int(digits)
