"""The parts of a recipe that a source's outline says: dummy inputs, dynamic axes, outputs; what is written comes first."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnxbuild.core.axis import is_sum, symbols_of
from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import DTYPES
from onnxbuild.core.source_error import SourceError
from onnxbuild.core.state import STATE
from onnxbuild.onnxkit.sources.outline import SizeRange, SourceOutline, SourceValue

BATCH = "batch"
"""The first axis of an input, where nothing names it."""

_FIRST, _OTHER = {"min": 1, "max": 8, "example": 2}, {"min": 1, "max": 64, "example": 16}
"""Sizes along an input's first axis, and along others, where nothing says them."""

_OFTEN = 64
"""A greatest size of the model's is taken up to so many times the usual one: all sizes are tried."""

UNSEEN = 2
"""Least size that torch.export writes for an axis without a minimum: it does not try 0 and 1."""

_WAYS = (("fill",), ("mask",), ("low", "high"))
"""Keys of an input that say how its values are drawn; one way takes the place of another."""

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_GENERATED = re.compile(r"unk__\d+|dim_\d+|d\d+|s\d+|N|None")
"""Names that converters give to axes without one: tf2onnx, torch, Keras."""


def recipe_parts(outline: SourceOutline, written: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a recipe that a model says, without what it leaves open.

    Args:
        outline: The model's, under the recipe's names.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: No recipe can declare the model, or this one asks for what it does not take.
    """
    own = mapping_in(written, "dummy_inputs")
    if own and outline.gives_way:
        outline = replace(outline, inputs=())
    names = [value.name for value in outline.inputs]
    if names and not outline.takes_more:
        for name in own:
            if name not in names:
                what = f"the model has no input '{name}'"
                raise SourceError(what, nearest(name, names), "dummy_inputs", name)
    state = {**outline.state, **mapping_in(written, STATE)}
    shapes = [sizes_in(mapping_in(state, name).get("shape")) for name in state]
    declared = _declared(outline, shapes)
    inputs = {name: _below(each, mapping_in(own, name)) for name, each in declared}
    _leave_out_lost_sums(inputs, own, shapes)
    ranges: dict[str, _Held] = {}
    for name in {**inputs, **own}:
        known = inputs.get(name, {}).get("shape")
        shape = mapping_in(own, name).get("shape", known)
        if shape is None and name in inputs:
            raise SourceError(
                f"the model does not say how many dimensions input '{name}' has",
                f"write `dummy_inputs: {{{name}: {{shape: [batch, ...]}}}}`",
                mend={"dummy_inputs": {name: {"shape": [BATCH]}}},
            )
        shapes.append(sizes_in(shape))
        if outline.is_strict and isinstance(shape, list) and name in names:
            _fit(outline.inputs[names.index(name)], shape, outline, ranges)
    own_axes = mapping_in(written, "dynamic_axes")
    found = {
        "dummy_inputs": inputs,
        "outputs": [value.name for value in outline.outputs],
        "opset": outline.opset,
        "dynamic_axes": _axes(shapes, own_axes, outline, ranges),
        STATE: outline.state,
        **outline.recipe,
    }
    return {key: value for key, value in found.items() if value}


def nearest(name: str, known: Sequence[str]) -> str:
    """A fix for a name that is none of those known: the nearest, and all of them."""
    return f"{did_you_mean(name, known)} it has {', '.join(known)}".strip()


def _declared(
    outline: SourceOutline, states: Iterable[Sequence[int | str]]
) -> list[tuple[str, dict[str, Any]]]:
    """(Name, dtype, shape and values of a dummy input): indices of a table have its rows as `high`.

    An axis keeps its name where that is one of the user's; the first axis of each input is `batch`
    where it has none. A sum of axes that inputs have by themselves stays that sum.
    """
    axes = AxisNames(outline.inputs)
    for value in (*outline.inputs, *(SourceValue("", shape=tuple(each)) for each in states)):
        axes.learn(value)
    found = []
    for value in outline.inputs:
        if value.dtype not in DTYPES:
            raise SourceError(
                f"input '{value.name}' has the type {value.dtype}; expected one of {', '.join(DTYPES)}",
                "convert the model again with another type of input",
            )
        shape = {} if value.shape is None else {"shape": axes.shape(value)}
        rows = {"low": 0, "high": value.table} if value.table else {}
        found.append((value.name, {"dtype": value.dtype, **shape, **rows, **value.values}))
    return found


def _below(known: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input's known keys; a way to draw values that `own` has drops the other ways."""
    if not any(key in own for way in _WAYS for key in way):
        return dict(known)
    others = {key for way in _WAYS if not own.keys() & way for key in way}
    return {key: value for key, value in known.items() if key not in others}


def _leave_out_lost_sums(
    inputs: dict[str, dict[str, Any]],
    own: Mapping[str, Any],
    states: Iterable[Iterable[int | str]],
) -> None:
    """Give a sum a name of its own if the recipe's own shapes leave no input or state with one of its axes alone, in place."""
    left = {
        name: each["shape"]
        for name, each in inputs.items()
        if "shape" in each and "shape" not in mapping_in(own, name)
    }
    shapes = [*left.values(), *(sizes_in(mapping_in(own, name).get("shape")) for name in inputs)]
    alone = {size for shape in (*shapes, *states) for size in shape if not is_sum(size)}
    for name, shape in left.items():
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name)
        for n, size in enumerate(shape):
            if is_sum(size) and not alone.issuperset(symbols_of(size)):
                shape[n] = f"{stem}_{n}"


class AxisNames:
    """Names of axes, each for one meaning.

    Args:
        inputs: All of the model's.
    """

    def __init__(self, inputs: Sequence[SourceValue]) -> None:
        self._named: dict[str, str] = {}
        written = [
            (n, size)
            for value in inputs
            for n, size in enumerate(value.shape or ())
            if isinstance(size, str) and _is_own(size)
        ]
        self._own = {size for _, size in written}
        self._batch_is_first = all(n == 0 for n, size in written if size == BATCH)

    def learn(self, value: SourceValue) -> None:
        """Name the axes of an input that have a name and are no sums."""
        for n, size in enumerate(value.shape or ()):
            if isinstance(size, str) and size and not is_sum(size):
                self._axis(size, value.name, n)

    def shape(self, value: SourceValue) -> list[int | str]:
        """Return an input's shape as a recipe writes it."""
        return [
            size if isinstance(size, int) else self._axis(size, value.name, n)
            for n, size in enumerate(value.shape or ())
        ]

    def _axis(self, written: str, name: str, n: int) -> str:
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name)
        given = BATCH if n == 0 and self._batch_is_first else f"{stem}_{n}"
        if not written:
            return given
        if is_sum(written) and (known := self._sum(written)):
            return known
        if written not in self._named:
            self._named[written] = written if _is_own(written) else self._free(given, stem, n)
        return self._named[written]

    def _sum(self, written: str) -> str:
        """A sum of axes that have names, and numbers; empty for any other."""
        parts = [part.strip() for part in written.split("+")]
        is_known = all(part.isdecimal() or part in self._named for part in parts)
        is_fixed = all(part.isdecimal() for part in parts)
        return (
            " + ".join(self._named.get(part, part) for part in parts)
            if is_known and not is_fixed
            else ""
        )

    def _free(self, given: str, stem: str, n: int) -> str:
        """A name for an axis that has a generated one: another axis may be `batch` already."""
        is_free = given not in self._own and given not in self._named.values()
        return given if is_free else f"{stem}_{n}"


def _is_own(written: str) -> bool:
    """Return whether an axis's name is one of the user's."""
    return bool(_SYMBOL.match(written)) and _GENERATED.fullmatch(written) is None


@dataclass(frozen=True, slots=True)
class _Held:
    """Sizes that a recipe's axis is held to.

    Attributes:
        symbol: The model's axis.
        sizes: What the model takes.
        place: Which input and axis, for messages.
        is_first: It is an input's first axis.
    """

    symbol: str
    sizes: SizeRange
    place: str
    is_first: bool

    def default(self) -> dict[str, int]:
        """`min`, `max` and `example` where the recipe writes none of them."""
        usual, taken = _FIRST if self.is_first else _OTHER, self.sizes
        least = max(taken.min, taken.step)
        most = max(usual["max"] // taken.step * taken.step, least)
        if taken.max is not None and (taken.max < most or taken.max <= usual["max"] * _OFTEN):
            most = taken.max
        return {"min": least, "max": most, "example": min(most, max(least, usual["example"]))}

    def takes(self, low: int, high: int) -> bool:
        """Return whether all sizes from `low` to `high` are the model's."""
        taken = self.sizes
        least = taken.step if taken.min == UNSEEN * taken.step else taken.min
        fits = low >= least and (taken.max is None or high <= taken.max)
        return fits and not low % taken.step


def _fit(
    value: SourceValue, shape: Sequence[Any], outline: SourceOutline, ranges: dict[str, _Held]
) -> None:
    """Hold a shape to the model's; adds what the model says of its axes to `ranges`."""
    key, theirs = ("dummy_inputs", value.name, "shape"), value.shape or ()
    if len(shape) != len(theirs):
        raise SourceError(
            f"input '{value.name}' of the model has {len(theirs)} dimensions; the recipe has {len(shape)}",
            "remove `shape`: the model says it",
            *key,
        )
    again = f", or {outline.again}" if outline.again else ""
    for n, (size, known) in enumerate(zip(shape, theirs, strict=True)):
        place = f"axis {n} of input '{value.name}'"
        if isinstance(known, int):
            if isinstance(size, int | str) and size != known:
                what = f"the model has the size {known} along {place}; the recipe has {size}"
                raise SourceError(what, f"write {known}{again}", *key)
        elif known in outline.ranges:
            held = _Held(known, outline.ranges[known], place, n == 0)
            if isinstance(size, str) and not is_sum(size):
                _tie(size, held, ranges, key)
            elif isinstance(size, int) and not held.takes(size, size):
                what = f"the model takes {held.sizes.rule} along {place}; the recipe has {size}"
                raise SourceError(what, f"write a size that it takes{again}", *key)


def _tie(axis: str, held: _Held, ranges: dict[str, _Held], key: tuple[str, ...]) -> None:
    """Add an axis; the model has one size wherever it has one symbol."""
    for other, known in ranges.items():
        if known.symbol == held.symbol and other != axis:
            raise SourceError(
                f"the model has one size along {known.place} and {held.place}; the recipe has "
                f"'{other}' and '{axis}'",
                f"write '{other}' in both",
                *key,
            )
    before = ranges.setdefault(axis, held)
    if before.symbol != held.symbol:  # the recipe ties what the model does not
        one, two = before.sizes, held.sizes
        most = min((each.max for each in (one, two) if each.max is not None), default=None)
        both = SizeRange(max(one.min, two.min), most, max(one.step, two.step))
        ranges[axis] = replace(before, sizes=both)


def _axes(
    shapes: Iterable[Iterable[int | str]],
    own: Mapping[str, Any],
    outline: SourceOutline,
    ranges: Mapping[str, _Held],
) -> dict[str, dict[str, int]]:
    steps = {name: {"multiple_of": held.sizes.step} for name, held in ranges.items()}
    steps = {name: each for name, each in steps.items() if each["multiple_of"] > 1}
    asked = {name: {**each, **mapping_in(own, name)} for name, each in steps.items()}
    known = {**outline.axes, **{name: held.default() for name, held in ranges.items()}}
    axes = completed_axes(shapes, {**own, **asked}, known)
    for name, held in ranges.items():
        axes[name] |= steps.get(name, {})
        _keep_to(name, held, {**axes[name], **mapping_in(own, name)}, outline.again)
    return axes


def _keep_to(axis: str, held: _Held, sizes: Mapping[str, Any], again: str) -> None:
    low, high, step = (sizes.get("min"), sizes.get("max"), sizes.get("multiple_of", 1))
    if not (type(low) is int and type(high) is int and type(step) is int):
        return  # the schema says what is wrong
    taken = held.sizes
    if held.takes(low, high) and not step % taken.step:
        return
    fitting = {"min": max(taken.min, taken.step), "max": high if taken.max is None else taken.max}
    fitting |= {"multiple_of": taken.step} if taken.step > 1 else {}
    shown = ", ".join(f"{key}: {value}" for key, value in fitting.items())
    raise SourceError(
        f"axis '{axis}' is {low} to {high}"
        + (f" in steps of {step}" if step > 1 else "")
        + f"; the model takes {taken.rule} along {held.place}",
        f"write `{axis}: {{{shown}}}` or less of it" + (f", or {again}" if again else ""),
        "dynamic_axes",
        axis,
    )


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
