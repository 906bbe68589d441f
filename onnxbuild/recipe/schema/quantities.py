"""Read numbers that are written with a unit, a percent sign or separators, as the number in the unit of their key."""

from __future__ import annotations

import re

_QUANTITY = re.compile(r"[~<>=]{0,2}\s*([-+]?[0-9][0-9.,_]*(?:[eE][-+]?[0-9]+)?)\s*([^\W\d_]*|%)")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
_CLOCK = re.compile(r"([0-9]{1,4}):([0-5][0-9])", re.ASCII)
_VERSION = re.compile(r"(?:v|opset)[ _-]?([0-9]{1,3})", re.IGNORECASE)

_TIMES = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
_SIZES = {"": 1.0, "k": 1024.0, "m": 1024.0**2, "g": 1024.0**3, "t": 1024.0**4}
_BYTES = {
    f"{prefix}{end}": factor for prefix, factor in _SIZES.items() for end in ("b", "ib", "")
}  # fmt: skip
_COUNTS = {"k": 1e3, "m": 1e6}
_HERTZ = {"hz": 1.0, "khz": 1e3}

_UNITS = (
    (re.compile(r"_ms$"), "ms", _TIMES, 1e-3),
    (re.compile(r"_us$"), "us", _TIMES, 1e-6),
    (re.compile(r"_s$|^seconds$"), "seconds", _TIMES, 1.0),
    (re.compile(r"_hours$"), "hours", _TIMES, 3600.0),
    (re.compile(r"_days$"), "days", _TIMES, 86400.0),
    (re.compile(r"_mb$"), "MB", _BYTES, 1024.0**2),
    (re.compile(r"mem_limit$|workspace_size$"), "bytes", _BYTES, 1.0),
    (re.compile(r"^sample_rate$"), "Hz", _HERTZ, 1.0),
    (re.compile(r"_db(_min)?$"), "dB", {"db": 1.0}, 1.0),
)
"""The end of a key, the word for its unit, the units that are converted, and its unit in terms of those."""


def unit_of(key: str) -> str:
    """Return the unit of a key's value, as people name it; empty if it has none.

    Args:
        key: The last part of its path.
    """
    return next((name for end, name, _, _ in _UNITS if end.search(key)), "")


def quantity(text: str, key: str) -> float | None:
    """Return the number that a text stands for, in the unit of `key`.

    Args:
        text: A value, such as `10 s`, `512MB`, `1,000` or `5%`.
        key: The last part of its path.

    Returns: None where the text is no number with a unit that fits the key.
    """
    text = text.strip()
    table, own = next(
        ((table, own) for end, _, table, own in _UNITS if end.search(key)), (_COUNTS, 1.0)
    )
    if key == "opset" and (version := _VERSION.fullmatch(text)):
        return float(version[1])
    if table is _TIMES and (clock := _CLOCK.fullmatch(text)):
        return _rounded((60 * int(clock[1]) + int(clock[2])) / own)
    found = _QUANTITY.fullmatch(text)
    number = None if found is None else _number(found[1])
    if found is None or number is None:
        return None
    unit = found[2]
    if unit == "%":
        return number if key == "percentile" else _rounded(number / 100)
    if not unit or unit.lower().rstrip("s") == key.rpartition("_")[2].rstrip("s"):
        return number
    factor = table.get(unit, table.get(unit.lower()))
    return None if factor is None else _rounded(number * factor / own)


def _rounded(number: float) -> float:
    """The number without what a division leaves behind the twelfth digit."""
    return float(f"{number:.12g}")


def _number(text: str) -> float | None:
    """The number of digits with separators; None where it could be two."""
    plain = text.replace("_", "")
    if _THOUSANDS.fullmatch(plain) and not plain.lstrip("-+").startswith("0"):
        plain = plain.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(",", ".")
    try:
        return float(plain)
    except ValueError:
        return None
