"""The user's data and projection, as baseline, fidelity and sensitivity take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.accuracy.sample_outputs import Projection
from onnxbuild.onnxkit.data.feeds import Feeds, check_feeds
from onnxbuild.onnxkit.data.user_feeds import iterate_user
from onnxbuild.onnxkit.host.progress import counted


def data_of(
    context: StepContext, data: Entrypoint, inputs: Sequence[DummyInput], samples: int
) -> Iterator[Feeds]:
    """Checked feeds, `samples` of them at most; 0 for all.

    Raises:
        StepError: The callable raises, or an item is not what the recipe declares.
    """
    items = iterate_user(context, data)
    for number, item in enumerate(counted(islice(items, samples or None), "samples", samples)):
        place = f"{context.where} ({data.target}, item {number})"
        yield check_feeds(item, inputs, place)


def projection_of(context: StepContext, project: Entrypoint | None) -> Projection | None:
    """The user's projection with its arguments, or None.

    Raises:
        StepError: It is missing, or can't be called.
    """
    if project is None:
        return None
    call, arguments = context.load(project), dict(project.args)
    return lambda outputs, feeds: call(outputs, feeds, **arguments)
