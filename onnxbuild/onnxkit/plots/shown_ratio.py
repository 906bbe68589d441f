"""A measured ratio as text: one that is not known to a factor of two is no number to print."""

from __future__ import annotations

UNKNOWN = "-"

_WIDEST = 2.0


def shown_ratio(value: float | None, low: float | None, high: float | None) -> str:
    """Return `1.84 x`; `-` where the interval is wider than a factor of two, or too little was measured.

    Args:
        value: How many times as fast; None where it was not measured.
        low: With `high`, the 95 % confidence interval; None or 0 where too little was measured.
        high: See low.
    """
    return UNKNOWN if value is None or not is_known(low, high) else f"{value:.2f} x"


def is_known(low: float | None, high: float | None) -> bool:
    """Return whether an interval is narrower than a factor of two."""
    return bool(low) and low is not None and high is not None and high <= _WIDEST * low
