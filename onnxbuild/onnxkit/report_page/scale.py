"""Axes: values to shares of a plot, and round numbers to mark on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_TINY = 1e-30
_MARGIN = 0.06
_SCALE = 3
"""Labels that give a scale, at least."""

_APART = 11.0
"""Percent between two labels, so that they can be read on a phone."""

_SMALL, _PLAIN, _LARGE = 1e-5, 1e-3, 1e5
"""Beyond these, powers of ten are shorter."""

_NICE = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """Values -> percent of a plot's width or height.

    Attributes:
        low: Value (or its decadic logarithm) at 0 %.
        high: That at 100 %.
        log: Whether logarithms are even.
    """

    low: float
    high: float
    log: bool

    def place(self, value: float) -> float:
        """Percent, 0 to 100; zero on a logarithmic axis is at its beginning."""
        at = math.log10(max(value, _TINY)) if self.log else value
        share = (at - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """(percent, label) of round numbers, from low to high, none too near to the one before."""
        kept: list[tuple[float, str]] = []
        for place, label in self._round(most):
            if not kept or place - kept[-1][0] >= _APART:
                kept.append((place, label))
        return kept

    def _round(self, most: int) -> list[tuple[float, str]]:
        if not self.log:
            values = self._even(most)
            return [
                (self.place(v), label) for v, label in zip(values, _labels(values), strict=True)
            ]
        first, last = math.floor(self.low), math.ceil(self.high)
        step = 1 + (last - first) // most if last - first > most else 1
        decades = [each for each in range(first, last + 1) if each % step == 0]
        for digits in ((1,), (1, 2, 5)):
            values = [digit * 10.0**decade for decade in decades for digit in digits]
            shown = [v for v in values if self.low - 1e-9 <= math.log10(v) <= self.high + 1e-9]
            if len(shown) >= _SCALE:
                break
        else:
            even = Scale(10.0**self.low, 10.0**self.high, log=False)
            shown = [value for value in even._even(most) if value > 0]
            return [(self.place(v), label) for v, label in zip(shown, _labels(shown), strict=True)]
        return [(self.place(value), _label(value)) for value in shown]

    def _even(self, most: int) -> list[float]:
        width = self.high - self.low
        power = math.floor(math.log10(width / most))
        step = min(nice * 10.0**power for nice in _NICE if nice * 10.0**power >= width / most)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor((self.high - first * step) / step + 1e-9)
        return [float(f"{n * step:.12g}") for n in range(first, first + count + 1)]


def _labels(values: Sequence[float]) -> list[str]:
    """Return the labels of values, with as many digits as it takes to tell neighbours apart."""
    step = min((abs(b - a) for a, b in pairwise(values)), default=0.0)
    if not step or max(map(abs, values)) >= _LARGE or step < _SMALL:
        return [_label(value) for value in values]
    digits = next(n for n in range(8) if abs(round(step, n) - step) < step / 100)
    return [f"{value:,.{digits}f}" if value else "0" for value in values]


def _label(value: float) -> str:
    if value and not _PLAIN <= abs(value) < _LARGE:
        digits, _, power = f"{value:.4e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    return f"{value:.5g}"


def scale_of(values: Iterable[float], *, log: bool, from_zero: bool = False) -> Scale:
    """Return a scale that holds all values, with a margin.

    Args:
        values: Finite; those of a logarithmic axis that are not above zero count as its beginning.
        log: Whether it is logarithmic.
        from_zero: Whether a linear one begins at zero.
    """
    found = [float(each) for each in values]
    if log:
        found = [math.log10(each) for each in found if each > _TINY]
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    if from_zero and not log:
        low, high = min(0.0, low), max(0.0, high)
        return Scale(low, high * 1.02 if high > low else low + 1, log)
    if high - low <= max(abs(high), 1.0) * 1e-9:
        room = 0.3 if log else abs(high) * 0.1 or 0.5
    else:
        room = (high - low) * _MARGIN
    return Scale(low - room, high + room, log)
