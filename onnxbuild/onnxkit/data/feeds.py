"""Feeds: input name -> array, made from the recipe's dummy inputs or checked against them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from onnxbuild.core.axis import is_sum, shape_at, size_at
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.data.feed_checks import check_array, check_names
from onnxbuild.onnxkit.data.states import empty_state
from onnxbuild.onnxkit.data.user_code import an
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.model.tensor_types import BFLOAT16, STRING, numpy_dtype, rounded

_WORDS, _LETTERS = 4, 8
"""Most words of a random string, and most letters of each."""


def dummy_array(each: DummyInput, sizes: Mapping[str, int], seed: str | int) -> np.ndarray:
    """Make the values of an input.

    Floats are standard normal, or uniform in [low, high); integers uniform in [low, high), by
    default 0 or 1 (all values for 8-bit types); bools are fair coins; strings are some words of
    lowercase letters. See `DummyInput` for `fill`, `mask`, `missing` and `arange`.

    Args:
        sizes: Axis name -> elements along it, for every symbol in its shape.
        seed: Any int or string; each input has a generator of its own, seeded by it and the name.
    """
    dtype, shape = numpy_dtype(each.dtype), shape_at(each.shape, sizes)
    made: np.ndarray
    if each.arange is not None:
        positions: np.ndarray = size_at(each.arange, sizes) + np.arange(shape[-1])
        made = np.broadcast_to(positions, shape).astype(dtype, order="C")
    elif each.mask is not None:
        made = _mask(each, shape, seed).astype(dtype)
    elif each.fill is not None:
        made = _filled(each.fill, shape, dtype)
    else:
        made = _drawn(each, shape, _generator(f"{seed}:{each.name}"))
        if each.missing:
            made[_generator(f"{seed}:missing:{each.name}").random(shape) < each.missing] = math.nan
    return rounded(made) if each.dtype == BFLOAT16 else made


def is_free(each: DummyInput) -> bool:
    """Return whether an input's values are drawn: not those of a mask, nor positions, nor fixed ones, nor texts."""
    fixed = each.mask is not None or each.arange is not None or each.fill is not None
    return not fixed and each.dtype != STRING


def value_range(each: DummyInput) -> tuple[float, float] | None:
    """Return the least and the greatest value that an input is drawn from; None for floats without a range."""
    dtype = numpy_dtype(each.dtype)
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        least, end = _integer_range(each, dtype)
        return least, end - 1
    if each.low is None and each.high is None:
        return None
    low, high = _float_range(each)
    return low, float(np.nextafter(np.float32(high), np.float32(low)))


def _float_range(each: DummyInput) -> tuple[float, float]:
    """[low, high)."""
    low = 0.0 if each.low is None else float(each.low)
    return low, low + 1.0 if each.high is None else float(each.high)


def _generator(seed: str) -> np.random.Generator:
    entropy = hashlib.sha256(seed.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(entropy[:16], "big")))


def _filled(fill: object, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """One value everywhere, or one for each row of the first axis, again and again."""
    if not isinstance(fill, tuple):
        value = np.array(fill, dtype)
        whole: np.ndarray = np.full(shape, value, value.dtype)
        return whole
    rows = np.array(fill, dtype)[np.arange(shape[0]) % len(fill)]
    columns = rows.reshape(-1, *(1 for _ in shape[1:]))
    spread: np.ndarray = np.broadcast_to(columns, shape).copy()
    return spread


def _mask(each: DummyInput, shape: tuple[int, ...], seed: str | int) -> np.ndarray:
    """1 where a row of the last axis holds something, 0 where it is padding.

    Inputs of one declared shape get one set of lengths: a batch has one length a row.
    """
    size, count = shape[-1], math.prod(shape[:-1])
    generator = _generator(f"{seed}:mask:{list(each.shape)}")
    lengths = generator.integers(1, max(size, 2), count)
    lengths[:1] = size
    if each.mask == "left":
        filled = np.arange(size) >= size - lengths[:, None]
    else:
        filled = np.arange(size) < lengths[:, None]
    mask: np.ndarray = filled.reshape(shape)
    return mask


def _drawn(each: DummyInput, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    dtype = numpy_dtype(each.dtype)
    drawn: np.ndarray
    if each.dtype == STRING:
        return _texts(shape, generator)
    if dtype.kind == "b":
        drawn = generator.integers(0, 2, shape)
    elif dtype.kind in "iu":
        drawn = generator.integers(*_integer_range(each, dtype), shape, dtype=np.int64)
    elif each.low is None and each.high is None:
        drawn = generator.standard_normal(shape)
    else:
        low, high = _float_range(each)
        drawn = low + (high - low) * generator.random(shape)
    made: np.ndarray = np.asarray(drawn).astype(dtype)  # a scalar shape draws a plain number
    return made


def _texts(shape: Sequence[int], generator: np.random.Generator) -> np.ndarray:
    def word() -> str:
        count = int(generator.integers(1, _LETTERS + 1))
        return "".join(chr(ord("a") + int(n)) for n in generator.integers(0, 26, count))

    texts = [
        " ".join(word() for _ in range(int(generator.integers(1, _WORDS + 1))))
        for _ in range(math.prod(shape))
    ]
    made: np.ndarray = np.array(texts, np.str_).reshape(shape)
    return made


def _integer_range(each: DummyInput, dtype: np.dtype) -> tuple[int, int]:
    """[low, high), one past the greatest."""
    if each.low is None and each.high is None and dtype.itemsize == 1:
        info = np.iinfo(dtype)
        return int(info.min), int(info.max) + 1
    low = 0 if each.low is None else int(each.low)
    return low, low + 2 if each.high is None else int(each.high)


Feeds = dict[str, "np.ndarray"]


def make_feeds(inputs: Sequence[DummyInput], sizes: Mapping[str, int], seed: str | int) -> Feeds:
    """Random feeds, the same on every machine.

    Each input has a generator of its own, seeded by `seed` and its name, so that another input or
    another order changes nothing. See `dummy_array` for the values.

    Args:
        inputs: Inputs to make feeds for.
        sizes: Axis name -> elements along it, for every symbol in a shape.
        seed: Any int or string.
    """
    return {each.name: dummy_array(each, sizes, seed) for each in inputs}


def check_feeds(
    feeds: object, inputs: Sequence[DummyInput], where: str, axes: Sequence[Axis] = ()
) -> Feeds:
    """User-supplied feeds as arrays, in the inputs' order, or an error that says what is wrong.

    Args:
        feeds: A mapping of input name -> numpy array or torch tensor; without the state it is empty, as at a first call.
        inputs: Inputs, as the recipe declares them.
        where: Sample and callable, for messages.
        axes: The declared ones; sizes that they do not take are refused. Empty checks none.

    Raises:
        StepError: Not a mapping, or a name, dtype, rank or size is not as declared, or a NaN or inf
            (-inf passes: additive masks hold it).
    """
    if not isinstance(feeds, Mapping):
        paired = isinstance(feeds, tuple) and feeds and isinstance(feeds[0], Mapping)
        aside = " alone: labels are for `evaluate`" if paired else ""
        raise StepError(
            f"found {an(feeds)}; expected a mapping of input name -> array",
            where=where,
            fix=f"yield {{{', '.join(repr(i.name) + ': ...' for i in inputs)}}}{aside}",
        )
    is_first = not any(each.name in feeds for each in inputs if each.fed_by)
    given = [each for each in inputs if not (each.fed_by and is_first)]
    check_names(feeds, given, where)
    checked = {each.name: check_array(each, feeds[each.name], where) for each in given}
    if is_first:
        checked |= empty_state(checked, inputs)
    check_sizes(checked, inputs, axes, where, other="cut or pad the data to")
    return checked


def check_sizes(
    feeds: Feeds, inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str, *, other: str
) -> None:
    """See that axes have sizes that they take, and the same one in all inputs.

    Args:
        feeds: Of the right ranks.
        axes: The declared ones; axes that are not among them take any size.
        other: What else to do than to widen an axis; the sizes follow.

    Raises:
        StepError: They have not.
    """
    ranges = {axis.name: axis for axis in axes}
    for name, size in sizes_of(feeds, inputs, where).items():
        axis = ranges.get(name)
        if axis is not None and not axis.takes(size):
            is_range = not axis.min <= size <= axis.max
            fix = f"{other} {'that range' if is_range else f'{axis.nearest(size)}'}"
            raise StepError(
                f"axis '{name}' has size {size}; expected {axis.rule}",
                where=where,
                fix=f"widen `dynamic_axes: {{{name}: ...}}`, or {fix}" if is_range else fix,
            )


def sizes_of(feeds: Feeds, inputs: Sequence[DummyInput], where: str) -> dict[str, int]:
    """Axis name -> size, read from feeds of the right ranks; sums are held against their parts.

    Raises:
        StepError: Two inputs disagree on an axis, or a sum is not that of its parts.
    """
    sizes: dict[str, int] = {}
    maker: dict[str, str] = {}
    for each in inputs:
        for symbol, size in zip(each.shape, feeds[each.name].shape, strict=True):
            if isinstance(symbol, int) or is_sum(symbol):
                continue
            if sizes.setdefault(symbol, int(size)) != size:
                raise StepError(
                    f"axis '{symbol}' is {sizes[symbol]} in '{maker[symbol]}' but {size} in "
                    f"'{each.name}'",
                    where=where,
                    fix=f"give both inputs the same size along '{symbol}'",
                )
            maker.setdefault(symbol, each.name)
    for each in inputs:
        for n, dimension in enumerate(each.shape):
            found = int(feeds[each.name].shape[n])
            if is_sum(dimension) and found != size_at(dimension, sizes):
                parts = ", ".join(f"'{name}' is {size}" for name, size in sizes.items())
                raise StepError(
                    f"input '{each.name}' has size {found} along '{dimension}'; expected "
                    f"{size_at(dimension, sizes)}, as {parts}",
                    where=where,
                    fix=f"give '{each.name}' {size_at(dimension, sizes)} elements along axis {n}",
                )
    return sizes


def rows_of(feeds: Feeds, inputs: Sequence[DummyInput], made: Iterable[int] = ()) -> int:
    """Count the samples of a batch.

    These are the rows that all outputs and an input have. Where outputs don't say it, they are the
    size along the first axis of the first input where that axis is a dynamic one; where no input
    has such an axis, of the first input that has any. A scalar or a table can be before the batch.

    Args:
        feeds: At least one input.
        inputs: As the recipe declares them.
        made: Sizes along the first axis of outputs; empty where they are not known.
    """
    rows = {name: int(each.shape[0]) for name, each in feeds.items() if each.ndim}
    sizes = set(made)
    if len(sizes) == 1 and sizes <= set(rows.values()):
        return sizes.pop()
    dynamic = [each.name for each in inputs if each.shape and _is_axis(each.shape[0])]
    return next((rows[name] for name in (*dynamic, *rows) if name in rows), 1)


def _is_axis(dimension: object) -> bool:
    return isinstance(dimension, str) and not is_sum(dimension)


class FeedCache:
    """Feeds written one after the other; memory holds one at a time.

    Args:
        path: The file, in a scratch folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names: list[tuple[str, ...]] = []

    def keep(self, feeds: Iterable[Feeds]) -> Iterator[Feeds]:
        """Pass feeds on, each written first."""
        with self._path.open("wb") as file:
            for sample in feeds:
                self._names.append(tuple(sample))
                for array in sample.values():
                    np.save(file, array, allow_pickle=False)
                yield sample

    def __iter__(self) -> Iterator[Feeds]:
        """The feeds that were kept, in their order."""
        with self._path.open("rb") as file:
            for names in self._names:
                yield {name: np.load(file, allow_pickle=False) for name in names}
