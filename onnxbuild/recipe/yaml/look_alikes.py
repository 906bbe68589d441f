"""Name characters that look like YAML's own and are none: no-break blanks, full-width punctuation, curly quotes."""

from __future__ import annotations

import re
import unicodedata

from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault

_BLANKS = "\u00a0\u2002\u2003\u2007\u2009\u202f\u3000"
_NOTHING = "\u200b\u200c\u200d\u2060\ufeff"
_PUNCTUATION = {chr(ord(each) + 0xFEE0): each for each in ":,{}[]"}
_QUOTES = {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'"}
_INVISIBLE = frozenset(_BLANKS + _NOTHING)
_IN_LINE = re.compile(
    rf"[{_BLANKS}{_NOTHING}]"
    rf"|(?<=[A-Za-z0-9_\"'\]}}])[{re.escape(''.join(_PUNCTUATION))}]"
    rf"|(?<=[\[{{,:] )[{''.join(_QUOTES)}]|(?<=[\[{{,])[{''.join(_QUOTES)}]"
)
_COMMENT = re.compile(r"(^|\s)#.*$")


def invisible_at_an_end(value: str, at: Location) -> Fault | None:
    """Return the fault of a blank that is none for YAML at an end of a plain value; None if there is none.

    Args:
        value: The value.
        at: Where it starts.
    """
    found = next((each for each in (value[:1], value[-1:]) if each in _INVISIBLE), "")
    return _fault(found, at) if found else None


def look_alike_in(line: str, at: Location) -> Fault | None:
    """Return the fault of the first character of a line that stands where YAML's own would; None if there is none.

    Args:
        line: The whole line, in which there is a fault of syntax.
        at: A place in it.
    """
    found = _IN_LINE.search(_COMMENT.sub("", line))
    return _fault(found[0], Location(at.path, at.line, found.start() + 1)) if found else None


def _fault(found: str, at: Location) -> Fault:
    name = unicodedata.name(found, "a character").lower()
    what = f"U+{ord(found):04X} ({name}) stands here, which YAML does not read as it looks"
    meant = (_PUNCTUATION | _QUOTES).get(found, "")
    fix = f"write `{meant}` in its place" if meant else "write a blank in its place"
    return Fault(what, at, "remove it" if found in _NOTHING else fix)
