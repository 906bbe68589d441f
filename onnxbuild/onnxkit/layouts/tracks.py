"""Tracks of horizontal lines between two layers: no two lines that are not of one box run over each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_NEAR = 4.0
_APART = 8.0


@dataclass(frozen=True, slots=True)
class Track:
    """The horizontal part of the lines that leave one box.

    Attributes:
        left: Its left end.
        right: Its right end.
        track: From the top.
    """

    left: float
    right: float
    track: int


def assign(lines: Mapping[int, tuple[float, Sequence[float]]]) -> dict[int, Track]:
    """Return each box's run.

    A line that comes down from above, where another's goes on downwards, turns off above that.

    Args:
        lines: Box -> where its lines leave it, and where they end.
    """
    spans = {n: (min(x, *ends), max(x, *ends)) for n, (x, ends) in lines.items()}
    bent = [n for n, (left, right) in spans.items() if right - left > 0]
    first = {
        n: {
            other
            for other in bent
            if other != n and any(abs(lines[other][0] - end) < _NEAR for end in lines[n][1])
        }
        for n in bent
    }
    order = sorted(bent, key=lambda n: _turn(lines[n], n))
    found = {n: Track(*spans[n], 0) for n in spans if n not in set(bent)}
    placed: dict[int, int] = {}
    while order:
        ready = next((n for n in order if not (first[n] - placed.keys())), order[0])
        order.remove(ready)
        least = max((placed[n] + 1 for n in first[ready] if n in placed), default=0)
        left, right = spans[ready]
        taken = {
            track
            for n, track in placed.items()
            if spans[n][0] < right + _APART and left < spans[n][1] + _APART
        }
        track = least
        while track in taken:
            track += 1
        placed[ready] = track
        found[ready] = Track(left, right, track)
    return found


def _turn(line: tuple[float, Sequence[float]], number: int) -> tuple[float, int]:
    """Lines to the right: the rightmost above; lines to the left: the leftmost above."""
    x, ends = line
    goes_right = sum(ends) / len(ends) >= x
    return (-x if goes_right else x, number)
