"""Recipe keys that an exported program declares: dummy inputs, and the ranges of its axes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.axis import symbols_of
from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import DTYPES
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.data.completed_axes import BATCH, completed_axes, mapping_in, sizes_in
from onnxbuild.onnxkit.programs.exported_outline import ExportedInput, ExportedOutline, Size

_FIRST, _OTHER = (8, 2), (64, 16)
"""Greatest size and example along an input's first axis, and along others, where the program names none."""

_OFTEN = 64
"""A greatest size of the program's is taken up to so many times the usual one: all sizes are tried."""

_UNSEEN = 2
"""Least size that torch.export writes for an axis without a minimum: it does not try 0 and 1."""

_AGAIN = "or export the program again with another `torch.export.Dim`"


@dataclass(frozen=True, slots=True)
class _Range:
    """Sizes that a program takes along an axis of a recipe's.

    Attributes:
        symbol: The program's.
        min: Least size.
        max: Greatest; None for any.
        step: Every size is a multiple of it.
        place: Which input and axis, for messages.
        is_first: It is an input's first axis.
    """

    symbol: str
    min: int
    max: int | None
    step: int
    place: str
    is_first: bool

    @property
    def rule(self) -> str:
        upper = "or more" if self.max is None else f"to {self.max}"
        return f"{self.min} {upper}" + (f", multiples of {self.step}" if self.step > 1 else "")

    def default(self) -> dict[str, int]:
        """`min`, `max` and `example` where the recipe writes none of them."""
        usual, example = _FIRST if self.is_first else _OTHER
        least = max(self.min, self.step)
        most = max(usual // self.step * self.step, least)
        if self.max is not None and (self.max < most or self.max <= usual * _OFTEN):
            most = self.max
        return {"min": least, "max": most, "example": min(most, max(least, example))}


def recipe_of_exported(outline: ExportedOutline, written: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a recipe that a program says: `dummy_inputs`, `dynamic_axes`, `outputs`.

    Args:
        outline: The program's.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: No recipe can declare the program, or this one asks for what it does not take.
    """
    own = mapping_in(written, "dummy_inputs")
    names = [each.name for each in outline.inputs]
    for name in own:
        if name not in names:
            near = did_you_mean(name, names)
            fix = f"{near} it has {', '.join(names)}" if near else f"it has {', '.join(names)}"
            raise SourceError(f"the program has no input '{name}'", fix, "dummy_inputs", name)
    inputs = _declared(outline)
    shapes, ranges = [], dict[str, _Range]()
    for each in outline.inputs:
        written_shape = mapping_in(own, each.name).get("shape")
        shape = written_shape if isinstance(written_shape, list) else inputs[each.name]["shape"]
        shapes.append(sizes_in(shape))
        _fit(each, shape, outline, ranges)
    own_axes = mapping_in(written, "dynamic_axes")
    asked = {
        name: {
            **({"multiple_of": taken.step} if taken.step > 1 else {}),
            **mapping_in(own_axes, name),
        }
        for name, taken in ranges.items()
    }
    axes = completed_axes(
        shapes, {**own_axes, **asked}, {n: taken.default() for n, taken in ranges.items()}
    )
    for name, taken in ranges.items():
        axes[name] |= {"multiple_of": taken.step} if taken.step > 1 else {}
        _keep_to(name, taken, {**axes[name], **mapping_in(own_axes, name)})
    found: dict[str, Any] = {"dummy_inputs": inputs}
    found |= {"outputs": list(outline.outputs)} if outline.outputs else {}
    return found | ({"dynamic_axes": axes} if axes else {})


def _declared(outline: ExportedOutline) -> dict[str, dict[str, Any]]:
    if not outline.inputs:
        raise SourceError("the program takes no tensors", "export one that does")
    axes = _names(outline)
    found = {}
    for each in outline.inputs:
        if each.dtype not in DTYPES:
            raise SourceError(
                f"input '{each.name}' has the type {each.dtype}; expected one of {', '.join(DTYPES)}",
                "export the program again with another type of input",
            )
        found[each.name] = {
            "dtype": each.dtype,
            "shape": [
                size if isinstance(size, int) else _spelled(size, axes) for size in each.shape
            ],
            **({"low": 0, "high": each.table} if each.table else {}),
        }
    return found


def _names(outline: ExportedOutline) -> dict[str, str]:
    """Symbol -> the recipe's axis; PyTorch keeps no names, so an input's first axis is `batch`.

    Raises:
        SourceError: A size is another one twice.
    """
    names: dict[str, str] = {}
    factors: dict[str, int] = {}
    for each in outline.inputs:
        for n, size in enumerate(each.shape):
            if isinstance(size, int) or len(size.symbols) > 1 or size.number:
                continue
            ((symbol, factor),) = size.symbols.items()
            if factors.setdefault(symbol, factor) != factor:
                raise SourceError(
                    f"input '{each.name}' has the size {size.name} along axis {n}, and another input "
                    f"{Size({symbol: factors[symbol]}).name}: no recipe can say that",
                    "export the program with fixed sizes there",
                )
            stem = re.sub(r"[^A-Za-z0-9_]", "_", each.name)
            given = BATCH if n == 0 and BATCH not in names.values() else f"{stem}_{n}"
            names.setdefault(symbol, given)
    return names


def _spelled(size: Size, names: Mapping[str, str]) -> str:
    if len(size.symbols) > 1 or size.number:
        if any(by != 1 for by in size.symbols.values()) or size.number < 0:
            raise SourceError(
                f"the program has an input of the size {size.name}: a recipe has sums of axes alone",
                "export the program with a fixed size there",
            )
        parts = [names.get(symbol, symbol) for symbol in size.symbols]
        return " + ".join([*parts, *([str(size.number)] if size.number else [])])
    return names[next(iter(size.symbols))]


def _fit(
    each: ExportedInput, shape: Sequence[Any], outline: ExportedOutline, ranges: dict[str, _Range]
) -> None:
    """Hold a shape to the program's; adds what the program says of its axes to `ranges`."""
    key = ("dummy_inputs", each.name, "shape")
    if len(shape) != len(each.shape):
        raise SourceError(
            f"input '{each.name}' of the program has {len(each.shape)} dimensions; the recipe has {len(shape)}",
            "remove `shape`: the program says it",
            *key,
        )
    for n, (size, theirs) in enumerate(zip(shape, each.shape, strict=True)):
        place = f"axis {n} of input '{each.name}'"
        if isinstance(theirs, int):
            if isinstance(size, int | str) and size != theirs:
                raise SourceError(
                    f"the program has the size {theirs} along {place}; the recipe has {size}",
                    f"write {theirs}, {_AGAIN}",
                    *key,
                )
            continue
        if len(theirs.symbols) > 1 or theirs.number:
            continue
        ((symbol, step),) = theirs.symbols.items()
        low, high = outline.ranges.get(symbol, (_UNSEEN, None))
        taken = _Range(
            symbol, step * low, None if high is None else step * high, step, place, n == 0
        )
        if isinstance(size, str):
            for axis in symbols_of(size):
                if axis == size:
                    _tie(axis, taken, ranges, key)
        elif isinstance(size, int) and not _takes(taken, size, size):
            raise SourceError(
                f"the program takes {taken.rule} along {place}; the recipe has {size}",
                f"write a size that it takes, {_AGAIN}",
                *key,
            )


def _tie(axis: str, taken: _Range, ranges: dict[str, _Range], key: tuple[str, ...]) -> None:
    """Add an axis; the program has one size wherever it has one symbol."""
    for other, known in ranges.items():
        if known.symbol == taken.symbol and other != axis:
            raise SourceError(
                f"the program has one size along {known.place} and {taken.place}; the recipe has "
                f"'{other}' and '{axis}'",
                f"write '{other}' in both",
                *key,
            )
    before = ranges.setdefault(axis, taken)
    if before.symbol != taken.symbol:  # the recipe ties what the program does not
        highs = [each for each in (before.max, taken.max) if each is not None]
        step = max(before.step, taken.step)
        low, high = max(before.min, taken.min), min(highs, default=None)
        ranges[axis] = _Range(before.symbol, low, high, step, before.place, before.is_first)


def _takes(taken: _Range, low: int, high: int) -> bool:
    least = taken.step if taken.min == _UNSEEN * taken.step else taken.min
    return low >= least and (taken.max is None or high <= taken.max) and not low % taken.step


def _keep_to(axis: str, taken: _Range, sizes: Mapping[str, Any]) -> None:
    low, high = (sizes.get(key) for key in ("min", "max"))
    step = sizes.get("multiple_of", 1)
    numbers = [each for each in (low, high, step) if type(each) is int]
    if len(numbers) < 3:  # noqa: PLR2004 - the schema says what is wrong
        return
    low, high, step = numbers
    if _takes(taken, low, high) and not step % taken.step:
        return
    default = {"min": max(taken.min, taken.step), "max": high if taken.max is None else taken.max}
    if taken.step > 1:
        default["multiple_of"] = taken.step
    shown = ", ".join(f"{key}: {value}" for key, value in default.items())
    raise SourceError(
        f"axis '{axis}' is {low} to {high}"
        + (f" in steps of {step}" if step > 1 else "")
        + f"; the program takes {taken.rule} along {taken.place}",
        f"write `{axis}: {{{shown}}}` or less of it, {_AGAIN}",
        "dynamic_axes",
        axis,
    )
