"""Figures as cells of the table that a build ends with: text with units, `-` for none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

NONE = "-"

_MIB, _KIB = 1 << 20, 1 << 10


def number(key: str, digits: int) -> Callable[[Mapping[str, Any], str], str]:
    """Return a column's cell: a figure with that many digits behind the point."""

    def cell(metrics: Mapping[str, Any], _variant: str) -> str:
        value = metrics.get(key)
        return f"{value:.{digits}f}" if isinstance(value, int | float) else NONE

    return cell


def error(key: str) -> Callable[[Mapping[str, Any], str], str]:
    """Return a column's cell: a small figure, `1.2e-05`."""

    def cell(metrics: Mapping[str, Any], _variant: str) -> str:
        value = metrics.get(key)
        return f"{value:.1e}" if isinstance(value, int | float) else NONE

    return cell


def size(key: str) -> Callable[[Mapping[str, Any], str], str]:
    """Return a column's cell: bytes as MiB, or as KiB where that says more."""

    def cell(metrics: Mapping[str, Any], _variant: str) -> str:
        value = metrics.get(key)
        if not isinstance(value, int):
            return NONE
        return f"{value / _MIB:.1f} MiB" if value >= _MIB else f"{value / _KIB:.1f} KiB"

    return cell
