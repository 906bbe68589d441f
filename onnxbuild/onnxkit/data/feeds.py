"""Feeds: input name -> array, made from the recipe's dummy inputs or checked against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.axis import is_sum, shape_at, size_at
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.data.dummy_values import dummy_array
from onnxbuild.onnxkit.data.feed_checks import check_array, check_names
from onnxbuild.onnxkit.data.user_code import an

if TYPE_CHECKING:
    import numpy as np

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
    return {each.name: dummy_array(each, shape_at(each.shape, sizes), seed) for each in inputs}


def check_feeds(
    feeds: object, inputs: Sequence[DummyInput], where: str, axes: Sequence[Axis] = ()
) -> Feeds:
    """User-supplied feeds as arrays, in the inputs' order, or an error that says what is wrong.

    Args:
        feeds: A mapping of input name -> numpy array or torch tensor.
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
    check_names(feeds, inputs, where)
    checked = {each.name: check_array(each, feeds[each.name], where) for each in inputs}
    ranges = {axis.name: axis for axis in axes}
    for name, size in sizes_of(checked, inputs, where).items():
        axis = ranges.get(name)
        if axis is not None and not axis.takes(size):
            is_range = not axis.min <= size <= axis.max
            other = (
                f"cut or pad the data to {'that range' if is_range else f'{axis.nearest(size)}'}"
            )
            raise StepError(
                f"axis '{name}' has size {size}; expected {axis.rule}",
                where=where,
                fix=f"widen `dynamic_axes: {{{name}: ...}}`, or {other}" if is_range else other,
            )
    return checked


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
