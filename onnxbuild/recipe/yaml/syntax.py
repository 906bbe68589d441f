"""Explain YAML syntax errors in plain words."""

import re

import yaml

from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault

BYTES_MAX = 1024 * 1024

_QUOTE = 'quote the value, as in `"a: b"`'
_INDENT = "indent this line like its siblings, and close every bracket and quote above it"
_PLAIN_WORDS = (
    ("character '\\t'", "a tab is used where YAML allows only spaces", "indent with blanks"),
    ("mapping values are not allowed", "a ':' is not allowed here", _QUOTE),
    ("could not find expected ':'", "a ':' is missing after this key", "write `key: value`"),
    ("expected <block end>", "the indentation does not match the lines above", _INDENT),
    ("expected ',' or ']'", "a ',' or ']' is missing in this list", "add the `]` or the `,`"),
    ("expected ',' or '}'", "a ',' or '}' is missing in this mapping", "add the `}` or the `,`"),
    ("found unexpected end of stream", "a quote is opened and never closed", "close the quote"),
    ("expected the node content", "a value is missing here", "write a value, or quote this one"),
    ("cannot start any token", "this character can't start a value", "quote the value"),
    ("sequence entries are not allowed", "a list can't start here", "put `-` on a new line"),
    ("found unknown escape character", "this escape is not one of YAML's", "use single quotes"),
)

_OPENED = ("expected ',' or ']'", "expected ',' or '}'", "found unexpected end of stream")


def decode(content: bytes, shown: str) -> str:
    """The text of a file.

    Raises:
        ValueError: Too large, or not UTF-8; its argument is the Fault.
    """
    if len(content) > BYTES_MAX:
        what = f"the file has {len(content):,} bytes; a recipe has at most {BYTES_MAX:,}"
        raise ValueError(Fault(what, Location(shown, 1, 1), "keep data in a file of its own"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        what = f"byte 0x{content[error.start]:02x} is not UTF-8"
        at = _place(shown, before, len(before))
        raise ValueError(Fault(what, at, "save the file as UTF-8")) from None


def syntax_fault(error: yaml.YAMLError, shown: str, text: str) -> Fault:
    """The fault that PyYAML found, where it found it."""
    if isinstance(error, yaml.reader.ReaderError):
        at = _place(shown, text, error.position)
        return Fault(f"character U+{error.character:04X} is not allowed", at, "remove it")
    if not isinstance(error, yaml.MarkedYAMLError):
        return Fault(f"not YAML: {error}", Location(shown, 1, 1))
    mark = error.problem_mark or error.context_mark
    at = Location(shown, mark.line + 1, mark.column + 1) if mark else Location(shown, 1, 1)
    problem = error.problem or error.context or "not YAML"
    start = error.context_mark
    if joined := _joined(problem, at, start.line if start else at.line - 1, text):
        return joined
    for sign, what, fix in _PLAIN_WORDS:
        if sign in problem:
            from_line = f" (it starts in line {start.line + 1})" if start and mark != start else ""
            return Fault(f"YAML syntax: {what}{from_line if sign in _OPENED else ''}", at, fix)
    return Fault(f"YAML syntax: {problem}", at, "mend the syntax at this place")


def _joined(problem: str, at: Location, start: int, text: str) -> Fault | None:
    """Name a missing blank after a key's ':', as in `samples:4`; None where that is not the cause.

    Args:
        at: Where PyYAML met it.
        start: Line in which it began, from 0.
    """
    lines = text.splitlines()
    if "could not find expected ':'" in problem:
        number = start
    elif "mapping values are not allowed" in problem:
        number = max((n for n in range(at.line - 1) if lines[n].strip()), default=0)
    else:
        return None
    found = (
        re.fullmatch(r"( *)([\w-]+):([^\s:/].*)", lines[number]) if number < len(lines) else None
    )
    if found is None:
        return None
    place = Location(at.path, number + 1, len(found[1]) + 1)
    what = "YAML syntax: a blank is missing after this key's ':'"
    return Fault(what, place, f"write `{found[2]}: {found[3].strip()}`")


def _place(shown: str, text: str, position: int) -> Location:
    before = text[:position]
    line = before.count("\n") + 1
    return Location(shown, line, position - (before.rfind("\n") + 1) + 1)
