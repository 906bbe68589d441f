"""Numbers as a reader wants them."""

from __future__ import annotations

_MIB, _KIB = 1 << 20, 1 << 10
_MINUTE_S = 60
_SMALL, _LARGE = 1e-3, 1e5
_ROUNDED = 999.5
"""From here on, three digits would be `1e+03`."""


def size(value: float) -> str:
    """Bytes as MiB, or as KiB where that says more."""
    return f"{value / _MIB:,.1f} MiB" if value >= _MIB else f"{value / _KIB:.1f} KiB"


def number(value: float) -> str:
    """A figure with three digits that count."""
    if value == 0:
        return "0"
    if abs(value) < _SMALL or abs(value) >= _LARGE:
        return f"{value:.2e}".replace("e-0", "e-").replace("e+0", "e+")
    return f"{value:.3g}" if abs(value) < _ROUNDED else f"{value:,.0f}"


def milliseconds(value: float) -> str:
    """A time in ms, or in µs where that says more."""
    return f"{number(value)} ms" if value >= 0.1 else f"{number(value * 1e3)} µs"  # noqa: PLR2004


def seconds(value: float) -> str:
    """A time in s, or in minutes."""
    if value < _MINUTE_S:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), _MINUTE_S)
    return f"{minutes} min {rest} s"


def counted(count: int, noun: str) -> str:
    """`1 gate`, `3 gates`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
