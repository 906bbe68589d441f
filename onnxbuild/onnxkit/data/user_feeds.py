"""The user's data callables: whatever they return or raise, item by item."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.own_copy import own_copy
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint, call_user

_END = object()


def iterate_user(context: StepContext, data: Entrypoint) -> Iterator[object]:
    """The items of a callable that yields, or returns something iterable; see `items_of`.

    Raises:
        StepError: The callable is missing, raises (at once or at an item), or gives nothing to
            iterate over.
    """
    yield from items_of(call_data(context, data), context, data)


def call_data(context: StepContext, data: Entrypoint) -> object:
    """Return what a callable of data returns.

    Raises:
        StepError: It is missing, or raises.
    """
    return call_entrypoint(context.load(data), data, context.where, owner="the data's")


def items_of(found: object, context: StepContext, data: Entrypoint) -> Iterator[object]:
    """Yield the items of what a callable returned; each is a copy of its own, and none is kept.

    Raises:
        StepError: It raises at an item, or there is nothing to iterate over.
    """
    if not isinstance(found, Iterable) or isinstance(found, (str, bytes, Mapping)):
        one = isinstance(found, Mapping)  # its items would be its keys
        expected = "an iterable of such samples" if one else "something to iterate over"
        raise StepError(
            f"{data.target} returned {an(found)}; expected {expected}",
            where=context.where,
            fix="write it as a generator: `yield` each sample",
        )
    items = iter(found)
    for number in itertools.count():
        item = call_user(
            lambda: next(items, _END),
            f"{data.target}, asked for item {number},",
            context.where,
            owner="the data's",
        )
        if item is _END:
            return
        yield own_copy(item)
