"""Errors as JSON: what is wrong, at which file and line, what to type, and the exit code."""

import re
from typing import Literal, TypedDict

from onnxbuild.core.errors import BuildError, RecipeErrors

_PLACE = re.compile(r"(?P<file>[^\n]*\.\w+):(?P<line>\d+)(?::(?P<column>\d+))?")


class FaultRecord(TypedDict):
    """One thing that is wrong.

    Attributes:
        what: The value found and those expected, one sentence.
        where: The place as the terminal prints it: FILE:LINE:COLUMN, a step, an artifact; may be empty.
        file: The file of that place, relative to the project's root; null where it names none.
        line: Its line, from 1.
        column: Its column, from 1.
        fix: What to type or edit; may be empty.
    """

    what: str
    where: str
    file: str | None
    line: int | None
    column: int | None
    fix: str


class ErrorRecord(TypedDict):
    """Printed in place of the result, or as the last line, where a verb ends with an error.

    Attributes:
        type: `error`.
        code: The exit code.
        message: All of it as the terminal prints it.
        errors: What is wrong: all faults of a recipe at once.
    """

    type: Literal["error"]
    code: int
    message: str
    errors: list[FaultRecord]


def place_of(where: str) -> tuple[str | None, int | None, int | None]:
    """Return the file, line and column that the place of an error names; None for what it does not.

    Args:
        where: As `BuildError.where`.
    """
    found = _PLACE.fullmatch(where)
    if found is None:
        return None, None, None
    column = found["column"]
    return found["file"], int(found["line"]), None if column is None else int(column)


def fault_record(what: str, where: str = "", fix: str = "") -> FaultRecord:
    """Return one fault.

    Args:
        where: As `BuildError.where`.
    """
    file, line, column = place_of(where)
    return {
        "what": what, "where": where, "file": file, "line": line, "column": column, "fix": fix,
    }  # fmt: skip


def error_record(error: BuildError) -> ErrorRecord:
    """Return an error as JSON.

    Args:
        error: That a verb ended with.
    """
    faults = error.faults if isinstance(error, RecipeErrors) else (error,)
    return {
        "type": "error",
        "code": error.exit_code,
        "message": str(error),
        "errors": [fault_record(each.what, each.where, each.fix) for each in faults],
    }


def plain_error(what: str, code: int) -> ErrorRecord:
    """Return an error that is one sentence: of the command line, an interruption, a bug."""
    return {"type": "error", "code": code, "message": what, "errors": [fault_record(what)]}
