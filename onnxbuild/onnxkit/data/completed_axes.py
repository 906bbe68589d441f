"""A recipe's `dynamic_axes` where a model's file says its inputs: what is written, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.axis import Axis, symbols_of

BATCH = "batch"
"""The first axis of an input, where nothing names it."""

_FIRST, _OTHER = {"min": 1, "max": 8, "example": 2}, {"min": 1, "max": 64, "example": 16}
"""Sizes along an input's first axis, and along others, where nothing says them."""


def mapping_in(written: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the mapping below a key of a recipe as it is written; empty where there is none."""
    value = written.get(key)
    return value if isinstance(value, Mapping) else {}


def sizes_in(shape: object) -> list[int | str]:
    """Return the sizes and axes of a shape as it is written; empty where it is no list."""
    return (
        [size for size in shape if isinstance(size, int | str)] if isinstance(shape, list) else []
    )


def completed_axes(
    shapes: Iterable[Iterable[int | str]],
    written: Mapping[str, Any],
    known: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, dict[str, int]]:
    """A recipe's `dynamic_axes`: for each symbol in a shape what is not written, fitting what is.

    Args:
        shapes: Of all dummy inputs.
        written: `dynamic_axes` of the recipe; values may be anything.
        known: Symbol -> `min`, `max` and `example` where nothing is written, if the model says them.
    """
    completed: dict[str, dict[str, int]] = {}
    for shape in shapes:
        for n, dimension in enumerate(shape):
            for symbol in symbols_of(dimension):
                if symbol not in completed:
                    own = mapping_in(written, symbol)
                    default = (known or {}).get(symbol, _FIRST if n == 0 else _OTHER)
                    completed[symbol] = _completed(own, default)
    return completed


def _completed(written: Mapping[str, Any], default: Mapping[str, int]) -> dict[str, int]:
    known = {key: value for key, value in written.items() if type(value) is int and value >= 0}
    step = max(1, known.get("multiple_of", default.get("multiple_of", 1)))
    least = known.get("min", _up(default["min"], step))
    most = known.get("max", max(_up(default["max"], step), least, known.get("example", 0)))
    example = min(max(_up(default["example"], step), least), most // step * step)
    sizes = {"min": least, "max": most, "example": max(1, example)}
    return {**sizes, "multiple_of": step} if "multiple_of" in default else sizes


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


@dataclass(frozen=True, slots=True)
class FoundRule:
    """Rule for the sizes of some axes, and their declarations that follow from it.

    Attributes:
        what: The rule, in one sentence.
        fix: Text to type in the recipe.
        axes: Axes as they must be declared in `dynamic_axes`.
        fixed: Axes that take no size but their example.
    """

    what: str
    fix: str
    axes: tuple[Axis, ...] = ()
    fixed: tuple[Axis, ...] = ()
