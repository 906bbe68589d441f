"""Protobuf's text form, as config.pbtxt has it.

Source: protobuf's "Text Format Language Specification".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TypeAlias


class Word(str):
    """A value of an enum, which has no quotes."""

    __slots__ = ()


Value: TypeAlias = "str | bool | int | Word | Sequence[int] | Message"
Message: TypeAlias = "Sequence[tuple[str, Value]]"
"""Fields in order; a repeated field has an entry for each value, or one for a list of numbers."""


def text_of(message: Message) -> str:
    """Return a message's text, a line for each field."""
    return "".join(f"{line}\n" for line in _lines(message))


def _lines(message: Message) -> Iterator[str]:
    for name, value in message:
        if isinstance(value, (str, bool, int)):
            yield f"{name}: {_scalar(value)}"
        elif all(isinstance(each, int) for each in value) and (value or name in _LISTS):
            yield f"{name}: [ {', '.join(map(str, value))} ]" if value else f"{name}: [ ]"
        else:
            inside: Message = value  # type: ignore[assignment] # not all are numbers
            yield f"{name} {{"
            yield from (f"  {line}" for line in _lines(inside))
            yield "}"


_LISTS = frozenset({"shape"})
"""Repeated numbers that are written where there are none: an empty `reshape`."""


def _scalar(value: object) -> str:
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return json.dumps(value, ensure_ascii=False)  # whose escapes the text form has, too
