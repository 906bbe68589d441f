"""Resolve plain YAML scalars: YAML 1.2's core schema, without its surprises.

Source: https://yaml.org/spec/1.2.2/#103-core-schema. Narrower on purpose: only `true` and `false`
are booleans, numbers have no leading zeros, and nothing is a date.
"""

import math
import re

from onnxbuild.document.node import Scalar

_NULL = ("", "~", "null")
_BOOLEAN = {"true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_OCTAL = re.compile(r"0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
_DIGITS_MAX = 40


def resolve(text: str) -> Scalar:
    """The value of a scalar written without quotes.

    Raises:
        ValueError: A number that no recipe can hold; the message says which and why.
    """
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"'{text}' is not finite; expected a finite number")
    for pattern, base in ((_INTEGER, 10), (_HEX, 16), (_OCTAL, 8)):
        if pattern.fullmatch(text):
            return _integer(text, base)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"'{text}' is too large; expected at most 1.8e308")
        return number
    return text


def _integer(text: str, base: int) -> int:
    number = int(text, 0 if base != 10 else 10) if len(text) <= _DIGITS_MAX else None  # noqa: PLR2004
    if number is None or not INTEGER_MIN <= number <= INTEGER_MAX:
        shown = text if len(text) <= _DIGITS_MAX else f"{text[:_DIGITS_MAX]}..."
        raise ValueError(f"'{shown}' is too large; expected an integer of 64 bits")
    return number
