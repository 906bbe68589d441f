"""Place the labels of points so that none hides another, however wide the plot is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LINE = 15
"""Pixels that a label takes in height."""

_LETTER, _PIXEL = 2.4, 0.32
"""Percent of the width of a plot on a phone: a letter, a pixel.

Text is in pixels and places are in percent, so labels are longest where the plot is narrowest: those that
are apart there are apart everywhere.
"""

_GAP = 5
_STEP = 5
_TURN = 70.0
"""Percent of the width from which on a label is at the left of its point."""

_FULL = 96.0
"""Percent of the width at which labels end at most."""

_OTHER_SIDE = 12
"""Pixels that a label is rather moved up or down than to the other side of its point."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A point that is drawn as a disc.

    Attributes:
        label: Its text.
        x: Percent of the width.
        y: Pixels from the top.
        radius: Pixels.
    """

    label: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a label: its middle in pixels from the top, and its side of the point."""

    y: float
    is_left: bool


@dataclass(frozen=True, slots=True)
class _Box:
    """Left and right in percent on a phone, top and bottom in pixels."""

    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def placed(spots: Sequence[Spot], order: Sequence[int], height: int) -> list[Place]:
    """Return the places of labels, in the order in which they choose.

    Each takes the nearest place where it hides no label and no disc; where there is none, the nearest
    where it hides no label.

    Args:
        spots: All points.
        order: Their numbers: who chooses first.
        height: Of the plot, in pixels.
    """
    discs = [_disc(spot) for spot in spots]
    labels: list[_Box] = []
    found = []
    for number in order:
        spot = spots[number]
        others = [disc for n, disc in enumerate(discs) if n != number]
        choices = list(_places(spot, height))
        free = (
            place
            for taken in ([*labels, *others], labels)
            for place in choices
            if not any(_box(spot, place).meets(each) for each in taken)
        )
        place = next(free, choices[0])
        labels.append(_box(spot, place))
        found.append(place)
    return found


def _places(spot: Spot, height: int) -> Iterator[Place]:
    """Yield all places of a label, best first; those that end outside of the plot are last."""
    first = spot.x > _TURN
    shifts = range(-height, height + 1, _STEP)
    places = [
        (abs(shift) + (_OTHER_SIDE if is_left != first else 0), shift, is_left)
        for shift in shifts
        for is_left in (first, not first)
        if LINE / 2 <= spot.y + shift <= height - LINE / 2
    ] or [(0, 0, first)]

    def badness(each: tuple[int, int, bool]) -> tuple[float, int, int, bool]:
        box = _box(spot, Place(spot.y + each[1], each[2]))
        return max(-box.left, box.right - _FULL, 0.0), *each

    return (Place(spot.y + shift, is_left) for _, shift, is_left in sorted(places, key=badness))


def _box(spot: Spot, place: Place) -> _Box:
    """Return the box from the point to the label's end on a phone, where it is widest."""
    width = (spot.radius + _GAP) * _PIXEL + len(spot.label) * _LETTER
    left, right = (spot.x - width, spot.x) if place.is_left else (spot.x, spot.x + width)
    return _Box(left, right, place.y - LINE / 2, place.y + LINE / 2)


def _disc(spot: Spot) -> _Box:
    wide, high = spot.radius * _PIXEL, spot.radius
    return _Box(spot.x - wide, spot.x + wide, spot.y - high, spot.y + high)
