"""Wrap sentences to the width of a terminal, at words; commands stay whole, so that they can be copied."""

import os
import re
import sys

_LABEL = re.compile(r" *(?:error|Error|fix|note|problem): | *- | *\S+ {2,}| +")
"""Label or indentation that begins the first line; its width indents the others."""
_MARK = re.compile(r" *[\^~]+ *")
"""A line that marks a place in the line of code above it."""
_INDENT = 2
_MOST_INDENT = 16
_LEAST_ROOM = 24
_CHUNK = re.compile(
    r"`[^`]*`\S*"  # what is to be written
    r"|(?<=: )(?:onnxbuild|git|apt-get|mkdir|pip|npm|\S*python[\d.]*) \S.*?(?:[;,](?= )|(?= \(| or |$))"
    r"|\S+"
)
"""Text that no line break splits: a command after a colon, text in backticks, a word."""


def wrapped(text: str, width: int) -> str:
    """Return text whose lines are at most as wide as a terminal, where its words are not wider.

    Lines after the first are indented like the text of the first. A line of code with a mark below it
    stays as it is.

    Args:
        text: One line or several, without the last line's end.
        width: Characters a line; 0 for lines as long as they come.
    """
    if not width:
        return text
    lines = text.split("\n")
    return "\n".join(
        line
        for each, below in zip(lines, (*lines[1:], ""), strict=True)
        for line in ([each] if _MARK.fullmatch(below) else _lines(each, width))
    )


def _lines(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    label = _LABEL.match(text)
    begin = label.end() if label else 0
    indent = begin if label and begin <= min(_MOST_INDENT, width - _LEAST_ROOM) else _INDENT
    lines, line = list[str](), text[:begin]
    is_empty = True
    for each in _CHUNK.finditer(text, begin):
        gap = "" if is_empty else " "
        if not is_empty and len(line) + len(gap) + len(each[0]) > width:
            lines.append(line)
            line, gap = " " * indent, ""
        line += gap + each[0]
        is_empty = False
    return [*lines, line]


def output_width(*, err: bool = False) -> int:
    """Return how many characters a line of standard output takes; 0 where it is no terminal.

    Args:
        err: Of standard error instead.
    """
    stream = sys.stderr if err else sys.stdout
    try:
        if not stream.isatty():
            return 0
        given = os.environ.get("COLUMNS", "")
        if given.isdigit() and int(given):
            return int(given)
        return os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):  # closed, or replaced
        return 0


def fitted(text: str, *, err: bool = False) -> str:
    """Return text as it is to be printed: wrapped on a terminal, as it is elsewhere.

    Args:
        text: Without its last line's end.
        err: It goes to standard error.
    """
    return wrapped(text, output_width(err=err))
