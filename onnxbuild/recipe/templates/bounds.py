"""Operators, functions and filters that templates may use: each bounded in time and memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

TEXT_MAX = 65_536
RANGE_MAX = 1_000
BITS_MAX = 256
_PRECISION_MAX = 15


class BoundError(ValueError):
    """A template asks for more than a recipe may."""


def _sized(value: object) -> int:
    return len(value) if isinstance(value, (str, list, tuple)) else 0


def _check_size(size: int) -> None:
    if size > TEXT_MAX:
        raise BoundError(f"the result would have {size:,} items; at most {TEXT_MAX:,} are allowed")


def _check_bits(bits: int) -> None:
    if bits > BITS_MAX:
        raise BoundError(f"the result would have {bits:,} bits; at most {BITS_MAX} are allowed")


def add(left: Any, right: Any) -> Any:
    """`left + right`; texts and lists are joined up to TEXT_MAX items."""
    _check_size(_sized(left) + _sized(right))
    return operator.add(left, right)


def multiply(left: Any, right: Any) -> Any:
    """`left * right`; integers up to BITS_MAX bits, repeated texts up to TEXT_MAX characters."""
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    for repeated, count in ((left, right), (right, left)):
        if _sized(repeated) and isinstance(count, int):
            _check_size(_sized(repeated) * count)
    return operator.mul(left, right)


def power(left: Any, right: Any) -> Any:
    """`left ** right`, up to BITS_MAX bits."""
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(max(1, left.bit_length()) * right if abs(left) > 1 else 0)
    return operator.pow(left, right)


def modulo(left: Any, right: Any) -> Any:
    """`left % right` of numbers; a text on the left would be a format."""
    if isinstance(left, str):
        raise BoundError("'%' formats no text here")
    return operator.mod(left, right)


BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "*": multiply,
    "**": power,
    "%": modulo,
}


def bounded_range(*bounds: int) -> list[int]:
    """`range(...)` as a list of at most RANGE_MAX integers."""
    numbers = range(*bounds)
    if numbers[RANGE_MAX:]:
        raise BoundError(f"range gives more than {RANGE_MAX:,} numbers")
    return list(numbers)


def join(items: Sequence[object], separator: str = "") -> str:
    """The items as one text."""
    texts = [str(item) for item in items]
    _check_size(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def replace(text: str, old: str, new: str) -> str:
    """`text` with every `old` replaced by `new`."""
    _check_size(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def round_number(number: float, precision: int = 0) -> float:
    """`number` rounded to `precision` digits, at most 15 either way."""
    if abs(precision) > _PRECISION_MAX:
        raise BoundError(f"round takes a precision from -{_PRECISION_MAX} to {_PRECISION_MAX}")
    return round(number, precision)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"range": bounded_range}
FILTERS: Mapping[str, Callable[..., Any]] = {
    "join": join,
    "replace": replace,
    "round": round_number,
}
PLAIN_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "first", "float", "int", "last", "length",
    "list", "lower", "max", "min", "sort", "string", "title", "trim", "unique", "upper",
)  # fmt: skip
METHODS = frozenset(
    {
        "capitalize", "endswith", "get", "items", "keys", "lower", "lstrip", "removeprefix",
        "removesuffix", "rstrip", "split", "startswith", "strip", "title", "upper", "values",
    }
)  # fmt: skip
