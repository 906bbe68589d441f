"""Explain YAML syntax errors in plain words."""

from __future__ import annotations

import re

import yaml

from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault
from onnxbuild.recipe.yaml.look_alikes import look_alike_in

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
    lines = text.splitlines()
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    if alike := look_alike_in(line, at):
        return alike
    if slip := _slip(problem, line, at):
        return slip
    if cause := _cause(problem, at, start.line if start else mark.line if mark else 0, text):
        return cause
    for sign, what, fix in _PLAIN_WORDS:
        if sign in problem:
            from_line = f" (it starts in line {start.line + 1})" if start and mark != start else ""
            return Fault(f"YAML syntax: {what}{from_line if sign in _OPENED else ''}", at, fix)
    return Fault(f"YAML syntax: {problem}", at, "mend the syntax at this place")


def _slip(problem: str, line: str, at: Location) -> Fault | None:
    """Name a slip within the line at hand; None where there is none that is known.

    Args:
        problem: PyYAML's.
        line: The whole line.
        at: Where PyYAML met it.
    """
    here, before = line[at.column - 1 : at.column], line[: at.column - 1]
    key = re.match(r" *(?:- +)?([\w./-]+): +", line)
    place = Location(at.path, at.line, key.start(1) + 1) if key else at
    if "mapping values are not allowed" in problem and key:
        rest = re.sub(r"\s+#.*$", "", line[key.end() :]).rstrip()
        if re.fullmatch(r"[\w-]+:", rest):
            return Fault(
                "YAML syntax: a ':' ends this value", place, f"write `{key[1]}: {rest[:-1]}`"
            )
        is_text = place.column == 1  # such as a description; the keys of sections are further in
        if not is_text and re.fullmatch(r"[\w-]+: [^:{}\[\],]+", rest):
            what = "YAML syntax: two keys stand in one line; the second needs braces or a line of its own"
            return Fault(what, place, f"write `{key[1]}: {{{rest}}}`")
    if "sequence entries are not allowed" in problem and key:
        item = re.fullmatch(r"- +([^:,{}\[\]#]+)", line[key.end() :].rstrip())
        if item:
            what = "YAML syntax: an item of a list can't start after its key"
            return Fault(what, place, f"write `{key[1]}: [{item[1]}]`")
    if "expected <block end>" in problem and here in {"]", "}"}:
        return Fault(f"YAML syntax: this '{here}' closes nothing", at, f"remove the `{here}`")
    if "expected ',' or" in problem and (joined := re.search(r";\s+[\w-]+$", before)):
        place = Location(at.path, at.line, joined.start() + 1)
        return Fault("YAML syntax: a ';' stands in place of a ','", place, "write `,`")
    return None


def _cause(problem: str, at: Location, start: int, text: str) -> Fault | None:
    """Name a missing blank after a key, or a line that is too far in; None where neither is the cause.

    Args:
        problem: PyYAML's.
        at: Where PyYAML met it.
        start: Line in which it began, from 0.
        text: The file's.
    """
    lines = text.splitlines()
    if "could not find expected ':'" in problem and start < len(lines):
        number = start
    elif "mapping values are not allowed" in problem:
        filled = [n for n in range(at.line - 1) if lines[n].strip()]
        number = filled[-1] if filled else 0
        if not re.fullmatch(r" *[\w-]+", lines[at.line - 1][: at.column - 1]):
            return None
    else:
        return None
    joined = re.fullmatch(r"( *)([\w-]+):([^\s:/].*)", lines[number])
    if joined:
        place = Location(at.path, number + 1, len(joined[1]) + 1)
        fix = f"write `{joined[2]}: {joined[3].strip()}`"
        return Fault("YAML syntax: a blank is missing after this key's ':'", place, fix)
    if "could not find" in problem:
        place = Location(at.path, number + 1, _depth(lines[number]) + 1)
        if dash := re.fullmatch(r" *-([^\s-].*)", lines[number]):
            what = "YAML syntax: a blank is missing after this '-'"
            return Fault(what, place, f"write `- {dash[1].strip()}`")
        pair = re.fullmatch(r" *([\w-]+)(?: *= *| +)([^\s=].*)", lines[number])
        key = re.fullmatch(r" *([\w-]+) *", lines[number])
        fix = f"{pair[1]}: {pair[2].strip()}" if pair else f"{key[1]}:" if key else "key: value"
        return Fault("YAML syntax: a ':' is missing after this key", place, f"write `{fix}`")
    if "mapping values" in problem and _depth(lines[at.line - 1]) > _depth(lines[number]):
        place = Location(at.path, at.line, _depth(lines[at.line - 1]) + 1)
        what = (
            f"YAML syntax: this line is further in than line {number + 1}, whose key has a value"
        )
        return Fault(what, place, "indent this line like its siblings")
    return None


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _place(shown: str, text: str, position: int) -> Location:
    before = text[:position]
    line = before.count("\n") + 1
    return Location(shown, line, position - (before.rfind("\n") + 1) + 1)
