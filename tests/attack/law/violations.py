"""A violation of the law: what happened, the program as a small project, and smaller programs."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.attack.law.contents import Disk
from tests.attack.law.formats import File
from tests.attack.law.program import Edit, Program

_READABLE = {"py", "text", "txt"}


@dataclass(frozen=True)
class Violation:
    """A violation of the law by one program.

    Attributes:
        kind: `stale` (other artifacts than a clean build), `other exit code`, `restless` (a second
            run ran the step), `overdone` (an edit that does not count ran it), `wrong why`, `bug`
            (exit code 70 or a traceback), `fails at first` (what works in plain Python),
            `unsteady program` (two clean builds differ).
        program: The program.
        edit: After which edit; None after the first build.
        labels: The parts whose values differ.
        report: What both builds reported.
    """

    kind: str
    program: Program
    edit: Edit | None
    labels: tuple[str, ...]
    report: str


def smaller(violation: Violation) -> Iterator[Program]:
    """Programs with fewer edits, then with fewer parts."""
    program, last = violation.program, violation.edit
    edits = program.edits
    if last is None:
        if edits:
            yield dataclasses.replace(program, edits=())
    elif last in edits and len(edits) > 1:
        yield dataclasses.replace(program, edits=(last,))
        if last is not edits[-1]:
            yield dataclasses.replace(program, edits=edits[: edits.index(last) + 1])
    for left_out in range(len(program.parts)):
        parts = program.parts[:left_out] + program.parts[left_out + 1 :]
        if parts:
            yield dataclasses.replace(program, parts=parts)
    for left_out, edit in enumerate(edits):
        if edit is not last:
            rest = edits[:left_out] + edits[left_out + 1 :]
            yield dataclasses.replace(program, edits=rest)


def describe(violation: Violation, shared: str = "SHARED") -> str:
    """The violation, its project, and the command that replays it."""
    program = violation.program
    lines = [f"{violation.kind} after {shown(violation.edit)}", violation.report]
    lines += [f"  part {part.number}: {part.label}" for part in program.parts]
    lines += [f"  edit {edit.number}: {shown(edit)}" for edit in program.edits]
    lines.append(f"  replay: {replay(program)}")
    for path, content in sorted(program.tree(shared).items()):
        lines.append(f"--- {path}")
        if isinstance(content, File) and content.kind in _READABLE:
            lines.append(content.content().decode())
        else:
            lines.append(repr(content))
    return "\n".join(lines)


def replay(program: Program) -> str:
    """The command that holds this program to the law again."""
    parts = ",".join(str(part.number) for part in program.parts)
    edits = ",".join(str(edit.number) for edit in program.edits) or "none"
    drawn = f"--seed {program.seed}{program.drawn_by}"
    return f"python -m tests.attack.law {drawn} --parts {parts} --edits {edits}"


def shown(edit: Edit | None) -> str:
    """An edit in a line."""
    if edit is None:
        return "the first build"
    more = [str(each) for each in (edit.value, edit.content) if each not in ("", None)]
    return " ".join([edit.op, edit.path, *more])


def write(program: Program, folder: Path) -> None:
    """Write the project of a program, with its packages and its shared files next to it."""
    for name in ("project", "site", "shared"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    disk = Disk(folder / "project", folder / "site", folder / "shared")
    disk.lay(program.tree(str(folder / "shared")))
