"""The user's evaluation: batches with labels, and the metric that scores what a model made of them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feeds import Feeds, check_feeds
from onnxbuild.onnxkit.data.non_finite import odd_values
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint
from onnxbuild.onnxkit.data.user_feeds import iterate_user
from onnxbuild.onnxkit.host.progress import counted

if TYPE_CHECKING:
    import numpy as np


def labelled_batches(
    context: StepContext, data: Entrypoint, inputs: Sequence[DummyInput], samples: int = 0
) -> Iterator[tuple[Feeds, object]]:
    """(checked feeds, labels), a batch at a time; `samples` of them at most, 0 for all.

    Raises:
        StepError: The callable raises, or an item is no pair or not what the recipe declares.
    """
    for n, item in enumerate(
        counted(islice(iterate_user(context, data), samples or None), "items", samples)
    ):
        place = f"{context.where} ({data.target}, item {n})"
        if not isinstance(item, (tuple, list)) or len(item) != 2:  # noqa: PLR2004 - a pair
            raise StepError(
                f"found {an(item)}; expected a pair (feeds, labels)",
                where=place,
                fix="yield {input name: array}, labels",
            )
        yield check_feeds(item[0], inputs, place), item[1]


def score_batches(
    context: StepContext,
    entrypoint: Entrypoint,
    outputs: Sequence[Mapping[str, np.ndarray]],
    labels: Sequence[object],
) -> float:
    """Score all batches with the user's metric.

    Raises:
        StepError: It raises, or gives no finite number.
    """
    metric = context.load(entrypoint)
    target = entrypoint.target
    value = call_entrypoint(
        metric,
        entrypoint,
        context.where,
        owner="the metric's",
        given={"outputs": outputs, "labels": labels},
    )
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise StepError(
            f"{target} returned {an(value)}; expected a float",
            where=context.where,
            fix="return float(...)",
        )
    if not math.isfinite(value):
        odd = _odd_output(outputs)
        raise StepError(
            f"{target} returned {float(value)}; expected a finite number{odd}",
            where=context.where,
            fix="see what that batch feeds the model, or let the metric leave such values out"
            if odd
            else "look for an empty class or a division by zero in it: all outputs are finite",
        )
    return float(value)


def _odd_output(outputs: Sequence[Mapping[str, np.ndarray]]) -> str:
    """`; of batch 3 output 'logits' holds 2 NaN among ...`; empty if all are finite."""
    for number, batch in enumerate(outputs):
        for name, array in batch.items():
            if odd := odd_values(name, array):
                return f"; of batch {number} output {odd}"
    return ""
