"""Annotate what onnxbuild prints, for GitHub: `onnxbuild run RECIPE 2>&1 | annotations.py RECIPE`.

The text passes through as it is. An error that names FILE:LINE:COLUMN is an annotation there; a failed step, whose
message names none, is one at the line of the recipe that asks for the step.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_PLACE = r"(?P<file>[^\s:][^:\n]*\.\w+):(?P<line>\d+)(?::(?P<column>\d+))?"
_FAULT = re.compile(rf"(?:error: |(?P<note>note: ))?{_PLACE}: (?P<text>.+)")
_FAILED = re.compile(r"FAILED  (?P<step>[^\s:]+:[^\s:]+): (?P<text>(?!for the same reason).+)")
_AT = re.compile(rf" +at {_PLACE}$")
_ERROR = re.compile(r"error: (?P<text>.+)")
_MORE = re.compile(r" +(?:fix:|at) .+")
_TABLE = re.compile(r"recipe  variant ")


@dataclass(frozen=True, slots=True)
class Annotation:
    """One message at a place.

    Attributes:
        text: What is wrong, and the fix on a line of its own.
        level: `error` or `notice`.
        step: RECIPE:STEP that failed; empty for a fault of a recipe.
        file: Relative to the project's root; empty where none is known.
        line: 1-based; 0 where none is known.
        column: 1-based; 0 where none is known.
    """

    text: str
    level: str = "error"
    step: str = ""
    file: str = ""
    line: int = 0
    column: int = 0

    def command(self, folder: str) -> str:
        """Return GitHub's workflow command.

        Args:
            folder: The project's root, relative to the checkout's.
        """
        place = {
            "file": os.path.normpath(f"{folder}/{self.file}") if self.file else "",
            "line": self.line or "",
            "col": self.column or "",
            "title": self.step or "onnxbuild",
        }
        properties = ",".join(
            f"{name}={_escaped(str(each), ':,')}" for name, each in place.items() if each
        )
        return f"::{self.level} {properties}::{_escaped(self.text)}"


def _escaped(text: str, more: str = "") -> str:
    """Percent-encode what ends a command or a property of one."""
    for each in f"%\r\n{more}":
        text = text.replace(each, f"%{ord(each):02X}")
    return text


def annotations(lines: Iterable[str]) -> Iterator[Annotation]:
    """Yield an annotation for each message among the lines that onnxbuild printed."""
    current: Annotation | None = None
    for line in lines:
        found = _message(line)
        if found is not None:
            if current is not None:
                yield current
            current = found
        elif current is not None and (place := _AT.match(line)):
            current = replace(current, file=place["file"], line=int(place["line"]))
        elif current is not None and _MORE.match(line):
            current = replace(current, text=f"{current.text}\n{line.strip()}")
        elif current is not None:
            yield current
            current = None
    if current is not None:
        yield current


def _message(line: str) -> Annotation | None:
    """The message that begins on a line."""
    if fault := _FAULT.fullmatch(line):
        level = "notice" if fault["note"] else "error"
        return Annotation(
            fault["text"], level, "", fault["file"], int(fault["line"]), int(fault["column"] or 0)
        )
    if failed := _FAILED.fullmatch(line):
        return Annotation(failed["text"], step=failed["step"])
    if error := _ERROR.fullmatch(line):
        return Annotation(error["text"])
    return None


def placed(found: Iterable[Annotation], recipes: list[str]) -> Iterator[Annotation]:
    """Yield the annotations, those of failed steps at the line of the recipe that asks for the step."""
    places: dict[str, tuple[str, int, int]] | None = None
    for each in found:
        if not each.step or each.file:
            yield each
            continue
        places = _places(recipes) if places is None else places
        file, line, column = places.get(each.step, ("", 0, 0))
        yield replace(each, file=file, line=line, column=column)


def _places(recipes: list[str]) -> dict[str, tuple[str, int, int]]:
    """Step -> file, line and column; empty where the graph can't be made."""
    from onnxbuild.api import Request, graph_of
    from onnxbuild.core.errors import BuildError

    try:
        graph = graph_of(Request(tuple(map(Path, recipes))))
    except BuildError:
        return {}
    return {
        name: (step.location.path, step.location.line, step.location.column)
        for name, step in graph.steps.items()
    }


def summary(lines: Iterable[str]) -> list[str]:
    """Return Markdown for the job's page: the table of variants, failures and the last line."""
    kept = []
    in_table = False
    for line in lines:
        in_table = bool(_TABLE.match(line)) or (in_table and not line.startswith("in "))
        if in_table or line.startswith(("FAILED", "ok:", "up to date", "error:")):
            kept.append(line)
    return ["```text", *kept, "```"]


def main() -> None:
    """Pass standard input through, then print the annotations."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipes", nargs="*", help="the recipes that the text is about")
    parser.add_argument("--summary", type=Path, help="Markdown file to append a summary to")
    given = parser.parse_args()
    lines = []
    for line in sys.stdin:
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line.rstrip("\n"))
    found = list(placed(annotations(lines), given.recipes))
    if found:
        from onnxbuild.recipe.project import find_project

        root = find_project(Path(given.recipes[0]) if given.recipes else Path("recipe.yaml"))
        checkout = os.environ.get("GITHUB_WORKSPACE") or Path.cwd()
        for each in found:
            print(each.command(os.path.relpath(root, checkout)))
    if given.summary is not None:
        with given.summary.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in summary(lines))


if __name__ == "__main__":
    main()
