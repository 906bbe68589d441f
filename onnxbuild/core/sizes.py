"""Sizes, counts and figures for people."""

import math

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_THOUSAND = 1000


_FACTORS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size_bytes_of(text: str) -> int:
    """Return the bytes of a size: `4GiB`, `512 MiB`, `2G`; powers of 1024.

    Raises:
        ValueError: It is none, or zero.
    """
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    try:
        size = float(number.rstrip("kmgt")) * _FACTORS.get(number[-1:], 1)
    except ValueError:
        size = 0.0
    if not 0 < size < 1 << 60:
        raise ValueError(f"'{text}' is not a size; write it like 4GiB or 512MiB")
    return int(size)


def size_text(size_bytes: int) -> str:
    """Return a size in the unit that says most: `1.5 MiB`."""
    step = min((max(size_bytes, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size_bytes / (1 << 10 * step):.{1 if step else 0}f} {_UNITS[step]}"


def counted(count: int, noun: str) -> str:
    """Return `1 result` or `3 results`.

    Args:
        noun: What, in the singular; its plural ends in s.
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def share_text(share: float, digits: int) -> str:
    """Return a share in percent: `87%`. Only all is 100 %, and only nothing is 0 %: other shares get more digits.

    Args:
        share: 0 to 1.
        digits: Digits after the point, at least.
    """
    text = f"{share:.{digits}%}"
    while 0 < share < 1 and float(text[:-1]) in {0, 100}:
        digits += 1
        text = f"{share:.{digits}%}"
    return text


def figure(value: float, digits: int) -> str:
    """Return a number with so many digits that count; from 1,000 on a whole one: `0.123`, `12.3`, `12,345`.

    Args:
        digits: 4 at most.
    """
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if _THOUSAND <= abs(float(text)) < math.inf else text
