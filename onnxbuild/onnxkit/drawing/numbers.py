"""Numbers as a reader wants them: three digits that count, and no ratio that is not known to a factor of two."""

_MINUTE_S = 60
_SMALL, _LARGE = 1e-3, 1e5
_ROUNDED = 999.5
"""From here on, three digits would be `1e+03`."""


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


UNKNOWN = "-"

_WIDEST = 2.0


def shown_ratio(value: float | None, low: float | None, high: float | None) -> str:
    """Return `1.84 x`; `-` where the interval is wider than a factor of two, or too little was measured.

    Args:
        value: How many times as fast; None where it was not measured.
        low: With `high`, the 95 % confidence interval; None or 0 where too little was measured.
    """
    return UNKNOWN if value is None or not is_known(low, high) else f"{value:.2f} x"


def is_known(low: float | None, high: float | None) -> bool:
    """Return whether an interval is narrower than a factor of two."""
    return bool(low) and low is not None and high is not None and high <= _WIDEST * low
