"""GitHub's annotations: errors and notices at lines of recipes and of the user's Python."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import BuildError, RecipeErrors
from onnxbuild.document.faults import Remark
from onnxbuild.output.build import FailureRecord
from onnxbuild.output.error_record import place_of


@dataclass(frozen=True, slots=True)
class Annotation:
    """One message at a place.

    Attributes:
        text: What is wrong; may have several lines.
        title: What it is about.
        level: `error` or `notice`.
        file: Relative to the project's root; None where none is known.
        line: From 1.
        column: From 1.
    """

    text: str
    title: str = "onnxbuild"
    level: str = "error"
    file: str | None = None
    line: int | None = None
    column: int | None = None


def annotations_of_error(error: BuildError) -> Iterator[Annotation]:
    """Yield an annotation for each fault of an error that ends a command.

    Args:
        error: Why nothing was run.
    """
    for each in error.faults if isinstance(error, RecipeErrors) else (error,):
        place = place_of(each.where)
        where = f"{each.where}: " if each.where and place[0] is None else ""
        yield Annotation(f"{where}{_with_fix(each.what, each.fix)}", "onnxbuild", "error", *place)


def annotations_of_failures(failures: Iterable[FailureRecord]) -> Iterator[Annotation]:
    """Yield an annotation for each step that failed; one for several that fail alike at one line.

    Args:
        failures: From `outcome.failure_records`.
    """
    seen = set()
    for each in failures:
        if (each["file"], each["line"], each["what"]) in seen:
            continue
        seen.add((each["file"], each["line"], each["what"]))
        named = place_of(each["where"])[0] is not None or each["where"] in {"", each["step"]}
        what = each["what"] if named else f"{each['what']}\nat {each['where']}"
        text = _with_fix(what, each["fix"])
        if each["blocked"]:
            text += f"\n{depending(each['blocked'])}"
        yield Annotation(text, each["step"], "error", each["file"], each["line"], each["column"])


def annotations_of_remarks(remarks: Iterable[Remark]) -> Iterator[Annotation]:
    """Yield a notice for each remark on recipes.

    Args:
        remarks: From `request.remarks_of`.
    """
    for each in remarks:
        at = each.location
        if at is None or not at.line:  # of `--set`, which is in no file
            yield Annotation(str(each), level="notice")
        else:
            yield Annotation(each.text, "onnxbuild", "notice", at.path, at.line, at.column)


def depending(steps: int) -> str:
    """Return how many steps depend on one that failed."""
    return "1 step depends on it" if steps == 1 else f"{steps} steps depend on it"


def workflow_command(annotation: Annotation, project: Path, checkout: Path) -> str:
    """Return the line that has GitHub show an annotation.

    Args:
        project: The project's root, which files are relative to.
        checkout: The folder that the repository was checked out to.
    """
    place = {
        "file": _from_checkout(annotation.file, project, checkout),
        "line": annotation.line,
        "col": annotation.column,
        "title": annotation.title,
    }
    given = ",".join(f"{name}={_escaped(str(each), ':,')}" for name, each in place.items() if each)
    return f"::{annotation.level} {given}::{_escaped(annotation.text)}"


def _from_checkout(file: str | None, project: Path, checkout: Path) -> str | None:
    return None if file is None else os.path.relpath(project / file, checkout).replace(os.sep, "/")


def _with_fix(what: str, fix: str) -> str:
    return f"{what}\nfix: {fix}" if fix else what


def _escaped(text: str, more: str = "") -> str:
    """Percent-encode what ends a command or a property of one."""
    for each in f"%\r\n{more}":
        text = text.replace(each, f"%{ord(each):02X}")
    return text
