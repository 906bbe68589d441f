"""Columns of the table that a build ends with; figures as their cells: text with units, `-` for none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "-"

Cell = Callable[[Mapping[str, Any], str], str]
"""(what the step measured, the variant's name) -> the text, `-` for none."""

_MIB, _KIB = 1 << 20, 1 << 10


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table that a build ends with.

    Attributes:
        title: Its heading.
        step: The last part of the address of the step that measures it; empty for the one that makes
            the bundle.
        cell: Gives its text.
        place: Columns stand in this order.
        of_all: One step measures all variants; else each has its own.
        more: More such steps, each of which measures other bundles.
        if_any: Left out where no variant has it.
        heading: (what its steps measured) -> the heading, where that says more than `title`.
    """

    title: str
    step: str
    cell: Cell
    place: int = 100
    of_all: bool = False
    more: tuple[str, ...] = ()
    if_any: bool = False
    heading: Callable[[Sequence[Mapping[str, Any]]], str] | None = None

    def headed(self, measured: Sequence[Mapping[str, Any]]) -> str:
        """Return its heading in the table of some steps.

        Args:
            measured: What each of them measured; empty for one that did not run.
        """
        found = [each for each in measured if each]
        return self.title if self.heading is None or not found else self.heading(found)


def number(key: str, digits: int) -> Cell:
    """Return a column's cell: a figure with that many digits behind the point; a small one with three that count."""

    def shown(value: float) -> str:
        return f"{value:.3g}" if 0 < abs(value) < 10 ** (1 - digits) else f"{value:.{digits}f}"

    return _figure(key, shown)


def error(key: str) -> Cell:
    """Return a column's cell: a small figure, `1.2e-05`."""
    return _figure(key, "{:.1e}".format)


def size(key: str) -> Cell:
    """Return a column's cell: bytes as MiB, or as KiB where that says more."""
    return _figure(
        key, lambda size: f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size / _KIB:.1f} KiB"
    )


def _figure(key: str, shown: Callable[[float], str]) -> Cell:
    def cell(metrics: Mapping[str, Any], _variant: str) -> str:
        value = metrics.get(key)
        return shown(value) if isinstance(value, int | float) else NONE

    return cell
