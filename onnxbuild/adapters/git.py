"""Ask git about a project: its commit, when that was made, what differs from it."""

import os
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import BuildError, UsageError

_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE")
_ALWAYS = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1"}
_PLAIN = "H"  # `ls-files -t`: tracked, and neither skipped nor assumed to be unchanged
_MODIFIED = "M"
_STATES = {"A": "added", "D": "deleted"}
"""Letters of `diff --name-status`; others (a mode, a link in place of a file) are changes."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """The state of a working tree.

    Attributes:
        commit: HEAD, in full; None if there is none.
        committed_s: When it was made, in seconds since 1970; None if there is no commit.
        changed: Files that are not as the commit has them, or that it does not have, though they
            are used; relative to the repository's root, sorted; bytes that are no UTF-8 are
            escaped.
        why_none: Why there is no commit; empty if there is one.
        converted: Those of `changed` that differ only in what git itself changed on their way out
            of the repository: line endings, `$Id$`, a filter.
        beyond: Used files that are outside of the repository; none without a commit.
    """

    commit: str | None
    committed_s: int | None
    changed: tuple[str, ...] = ()
    why_none: str = ""
    converted: tuple[str, ...] = ()
    beyond: tuple[Path, ...] = ()

    @property
    def dirty(self) -> bool:
        """Whether the commit differs from the tree."""
        return self.commit is None or bool(self.changed)


def look(project: Path, used: Iterable[Path], shipped: Iterable[Path] = ()) -> Checkout:
    """The state of the working tree that a project is in.

    Any change to a tracked file counts; of other files only those that are used.

    Args:
        used: Files that matter, absolute.
        shipped: Those whose bytes matter as they are, not as git would take them back.

    Raises:
        BuildError: git refuses, for a reason other than that there is no repository.
    """
    try:
        top = _git(project, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return Checkout(None, None, why_none="git is not installed")
    if top.returncode != 0:
        if b"not a git repository" in top.stderr:
            return Checkout(None, None, why_none="the project is in no git repository")
        raise _refused(top)
    root = Path(os.path.realpath(os.fsdecode(top.stdout.rstrip(b"\n"))))
    head = _git(root, "rev-list", "--max-count=1", "--timestamp", "HEAD")
    if head.returncode != 0:
        return Checkout(None, None, why_none="the repository has no commit yet")
    seconds, commit = head.stdout.decode("ascii").split()
    inside, beyond = _sides(root, used)
    changed = {*_modified(root), *_unknown(root, inside)}
    converted = set(_converted(root, shipped)) - changed
    return Checkout(
        commit,
        int(seconds),
        tuple(sorted(map(_text, changed | converted))),
        converted=tuple(sorted(map(_text, converted))),
        beyond=beyond,
    )


@dataclass(frozen=True, slots=True)
class Committed:
    """A file of a commit.

    Attributes:
        commit: HEAD, in full.
        changed: The file has other bytes now.
    """

    commit: str
    changed: bool


def committed(project: Path, file: Path) -> Committed | None:
    """The commit of a project that a file is in; None if it is in none, or there is no git.

    The project's own repository counts; a nested one proves nothing.

    Args:
        file: Its path; a link counts as the file that it leads to.
    """
    try:
        top = _git(project, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return None
    root = Path(os.path.realpath(os.fsdecode(top.stdout.rstrip(b"\n"))))
    real = Path(os.path.realpath(file))
    if top.returncode != 0 or not real.is_relative_to(root):
        return None
    head = _git(root, "rev-parse", "--verify", "HEAD")
    blob = _git(root, "cat-file", "blob", f"HEAD:{real.relative_to(root).as_posix()}")
    if head.returncode != 0 or blob.returncode != 0:
        return None
    return Committed(head.stdout.decode("ascii").strip(), blob.stdout != real.read_bytes())


def commit_of(project: Path, revision: str) -> str | None:
    """Return the commit that a revision names (`HEAD~1`, a branch, a tag), in full; None if it names none.

    Args:
        project: A folder of the repository.
    """
    wanted = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        found = _git(project, "rev-parse", *wanted)
    except (FileNotFoundError, ValueError):  # no git; a NUL byte
        return None
    return found.stdout.decode("ascii").strip() if found.returncode == 0 else None


@dataclass(frozen=True, slots=True)
class TreeChanges:
    """Changes from a commit to the working tree, untracked files included.

    Attributes:
        commit: The commit, in full.
        files: Absolute path, links in its folder resolved -> `added`, `changed` or `deleted`.
        entries: Absolute paths of files and folders that only one of both has.
    """

    commit: str
    files: Mapping[Path, str]
    entries: frozenset[Path]


def changes_since(project: Path, revision: str) -> TreeChanges:
    """Return what differs between a revision and the working tree; files that git ignores are left out.

    Args:
        project: A folder of the repository.
        revision: `HEAD~1`, a branch, a tag.

    Raises:
        UsageError: The project is in no git repository, or the revision names no commit of it.
        BuildError: git refuses.
    """
    try:
        top = _git(project, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        raise UsageError("git is not installed", fix="install it") from None
    if top.returncode != 0:
        raise UsageError("the project is in no git repository", where=str(project), fix="git init")
    root = Path(os.path.realpath(os.fsdecode(top.stdout.rstrip(b"\n"))))
    commit = commit_of(project, revision)
    if commit is None:
        raise UsageError(
            f"there is no commit '{revision}' in this repository",
            where=str(root),
            fix="git log --oneline; a shallow clone gets the commits that it lacks by `git fetch --unshallow`",
        )
    listed = _checked(
        root, "diff", "--name-status", "-z", "--no-renames", "--no-ext-diff",
        "--ignore-submodules=none", commit, "--",
    )  # fmt: skip
    states = list(zip(listed[::2], listed[1::2], strict=True))
    unknown = _checked(root, "ls-files", "--others", "--exclude-standard", "-z")
    states += [("A", path) for path in unknown]
    tracked = set(_checked(root, "ls-tree", "-r", "-d", "--name-only", "-z", commit))
    entries: set[str] = set()
    for state, path in states:
        if state != _MODIFIED:
            entries.add(path)
            above = os.path.dirname(path)
            while above and (above in tracked) != os.path.isdir(os.path.join(root, above)):
                entries.add(above)
                above = os.path.dirname(above)
    return TreeChanges(
        commit,
        {root / path: _STATES.get(state, "changed") for state, path in states},
        frozenset(root / path for path in entries),
    )


def export_commit(project: Path, commit: str, folder: Path) -> None:
    """Write the files of a project as a commit has them; a link that leads out of the project is left out.

    Args:
        project: The project's root, which may be below the repository's.
        folder: Where; it must be there.

    Raises:
        BuildError: git refuses: the commit does not have the project, say; or they can't be written.
    """
    archive = folder.with_name(f"{folder.name}.tar")
    done = _git(project, "archive", "--format=tar", f"--output={archive}", commit)
    if done.returncode != 0:
        raise _refused(done)
    try:
        with tarfile.open(archive, "r:") as files:
            files.extractall(folder, filter=_kept)  # noqa: S202 - the filter for data
    except (tarfile.TarError, OSError) as error:
        raise BuildError(f"the files of {commit[:12]} can't be written: {error}") from error
    finally:
        archive.unlink(missing_ok=True)


def _kept(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Filter a member as tarfile's filter for data does; None for a link to a place outside of the folder."""
    try:
        return tarfile.data_filter(member, folder)
    except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
        return None


def _sides(root: Path, used: Iterable[Path]) -> tuple[list[Path], tuple[Path, ...]]:
    """(files in the repository's folder, files beyond it); a link counts at its own place."""
    inside: list[Path] = []
    beyond: list[Path] = []
    for path in used:
        as_named = Path(os.path.realpath(path.parent), path.name)
        (inside if as_named.is_relative_to(root) else beyond).append(path)
    return inside, tuple(beyond)


def _modified(root: Path) -> list[str]:
    """Tracked files that differ from HEAD, in the index or in the working tree."""
    entries = _checked(
        root,
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=no",
        "--ignore-submodules=untracked",
    )
    return [entry[3:] for entry in entries if entry]  # `XY PATH`


def _unknown(root: Path, used: Iterable[Path]) -> list[str]:
    """Used files that git does not track, or does not look at; links count as what they lead to."""
    tracked = {
        entry[2:]
        for entry in _checked(root, "ls-files", "-v", "-z", "--recurse-submodules")
        if entry[:1] == _PLAIN
    }
    unknown = []
    for path in used:
        as_named = os.path.join(os.path.realpath(path.parent), path.name)
        names = [os.path.relpath(p, root) for p in (as_named, os.path.realpath(path))]
        if any(name not in tracked for name in names):
            unknown.append(names[0])
    return unknown


def _converted(root: Path, shipped: Iterable[Path]) -> Iterator[str]:
    """Files whose bytes are not those of HEAD; `git status` compares what it would take back."""
    for path in shipped:
        real = Path(os.path.realpath(path))
        blob = _git(real.parent, "cat-file", "blob", f"HEAD:./{real.name}")
        if blob.returncode != 0 or blob.stdout != real.read_bytes():
            yield os.path.relpath(real, root)


def _text(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _checked(root: Path, *arguments: str) -> list[str]:
    """Run git, and return the entries that it lists, each ended by a NUL byte.

    Raises:
        BuildError: git refuses.
    """
    done = _git(root, *arguments)
    if done.returncode != 0:
        raise _refused(done)
    return os.fsdecode(done.stdout).split("\0")[:-1]


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git on the repository that the folder is in, whichever a hook around us speaks of."""
    kept = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    return subprocess.run(
        ["git", "-c", "core.fsmonitor=false", *arguments],
        cwd=folder,
        env={**kept, **_ALWAYS},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def _refused(done: subprocess.CompletedProcess[bytes]) -> BuildError:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
    return BuildError(
        f"git refuses to report the state of the project: {lines[0]}", fix=" ".join(lines[1:])
    )
