"""List what a build is made of: the recipe as understood, files, packages, commit, machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from onnxbuild.adapters import git, machine
from onnxbuild.core.action import NO_FILE, ActionResult
from onnxbuild.core.errors import BuildError
from onnxbuild.onnxkit.report_page.blocks import Block, Cell, Cells, Paragraph, Table, Text
from onnxbuild.onnxkit.report_page.model import Part
from onnxbuild.onnxkit.report_page.words import counted, size
from onnxbuild.reporting.gather import Built, steps_of

_DIGITS = 12
_SHOWN = 40
_NAMED = 5


def commit_of(project: Path, files: Sequence[Path]) -> tuple[str, tuple[str, ...]]:
    """Return the commit that a project is at, and the files that differ from it; both empty outside of git."""
    try:
        found = git.look(project, files)
    except BuildError:
        return "", ()
    return ("", ()) if found.commit is None else (found.commit, found.changed)


def said_of(changed: Sequence[str]) -> str:
    """Return how many files are not as committed; empty for none."""
    return f"{counted(len(changed), 'file')} not as committed" if changed else ""


def made_of(
    built: Built, recipe: str, *, commit: str, changed: Sequence[str], explained: str
) -> Part:
    """Return what a recipe's build was made from.

    Args:
        built: What the store holds.
        recipe: The recipe's name.
        commit: The project's, in full; empty if there is none.
        changed: Files that differ from it.
        explained: The recipe in full.
    """
    results = [
        each.result
        for name in steps_of(built.graph, recipe)
        if (each := built.planned[name]).result is not None
    ]
    return Part("contents", tuple(_blocks(results, commit, changed, explained)))


def _blocks(
    results: Sequence[ActionResult], commit: str, changed: Sequence[str], explained: str
) -> Iterator[Block]:
    rows: list[Cells] = [
        ("processor", machine.host_class()["cpu"]),
        ("architecture", machine.host_facts().machine),
        ("cores used", str(machine.usable_cores())),
        ("memory", size(machine.memory_bytes())),
        ("Python", machine.python_build().split()[1]),
    ]
    if commit:
        rows.insert(0, ("commit", Cell(commit, code=True)))
    if changed:
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        names = f"{', '.join(changed[:_NAMED])}{more}"
        rows.insert(1, ("differs from it", f"{said_of(changed)}: {names}"))
    yield Table("Commit and this machine", ("what", "value"), tuple(rows))
    files = _observed(results, "sources") | _observed(results, "data")
    files = {
        name: digest
        for name, digest in files.items()
        if not name.startswith("<") and digest != NO_FILE
    }
    if files:
        yield Table(
            "Files of the project that steps read",
            ("file", "sha256"),
            _digests(files),
            folded=True,
        )
    packages = _packages(_observed(results, "distributions"))
    if packages:
        yield Table(
            "Packages that steps loaded", ("package", "version", "content"), packages, folded=True
        )
    if explained:
        yield Text("The recipe as it was understood", explained)
    else:
        yield Paragraph("The recipe can't be written in one file: see `onnxbuild explain`.")


def _observed(results: Sequence[ActionResult], what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in results:
        values: Mapping[str, str] = getattr(each.observed, what)
        found |= values
    return dict(sorted(found.items()))


def _digests(files: Mapping[str, str]) -> tuple[Cells, ...]:
    rows: tuple[Cells, ...] = tuple(
        (Cell(name, code=True), Cell(digest, code=True)) for name, digest in files.items()
    )
    more = len(rows) - _SHOWN
    return rows if more <= 0 else (*rows[:_SHOWN], (f"and {more} more", ""))


def _packages(found: Mapping[str, str]) -> tuple[Cells, ...]:
    """`numpy 2.4.6 070afa...` as three cells; what is no distribution is left out."""
    rows: list[Cells] = []
    for name, text in found.items():
        parts = text.split()
        if not name.startswith("<") and len(parts) == 3:  # noqa: PLR2004 - name, version, digest
            rows.append((name, parts[1], Cell(parts[2][:_DIGITS], code=True)))
    return tuple(rows)
