"""The feeds that a reference is computed on: dummy inputs at seeded points, then real samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from onnxbuild.core.axis import reference_points
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feeds import Feeds, check_feeds, make_feeds, sizes_of
from onnxbuild.onnxkit.data.fitting_points import FittingPoints
from onnxbuild.onnxkit.data.own_copy import own_copy
from onnxbuild.onnxkit.data.user_code import call_entrypoint, call_user
from onnxbuild.onnxkit.host.progress import counted

SAMPLE = "sample-"
"""Begins the names of points that are real samples."""


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """Inputs on which the variants are compared with PyTorch."""

    seed: int = option(0, help="seeds the dummy inputs", minimum=0)
    points: tuple[dict[str, int], ...] = option(
        (), help="more points, each a mapping of axis to size; axes left out are at their example"
    )
    max_samples: int = option(16, help="how many of the real samples are used", minimum=1)


def reference_feeds(
    context: StepContext,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    *,
    points: Sequence[Mapping[str, int]],
    seed: int,
    samples: Entrypoint | None,
    max_samples: int,
    fitting: FittingPoints | None = None,
) -> Iterator[tuple[str, Mapping[str, int], Feeds]]:
    """Yield (name, sizes, feeds) of the seeded points, then of the real samples.

    Args:
        context: The step's.
        inputs: Inputs, as the recipe declares them.
        axes: The dynamic axes.
        points: The user's own, besides those that every reference has.
        seed: Seed of the dummy inputs.
        samples: A callable that yields feeds; None for none.
        max_samples: Number of samples to use at most.
        fitting: Makes points smaller where the model's values would not fit into memory; None takes them all.

    Raises:
        StepError: The callable yields nothing, or a sample is not as declared.
    """
    every = reference_points(axes, points, seed)
    for each in counted(every, "points", doing=lambda point: f"running at {point.shown}"):
        point = each if fitting is None else fitting.fitted(each)
        if point is None:
            continue
        yield point.name, point.sizes, make_feeds(inputs, point.sizes, f"{seed}:{point.name}")
    if samples is not None:
        yield from sample_feeds(context, inputs, axes, samples, max_samples)


def sample_feeds(
    context: StepContext,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    samples: Entrypoint,
    max_samples: int,
) -> Iterator[tuple[str, Mapping[str, int], Feeds]]:
    """Yield (name, sizes, feeds) of the real samples; arguments and errors as of `reference_feeds`."""
    for n, found in enumerate(counted(_samples(context, samples, max_samples), "samples")):
        where = f"{context.where} ({samples.target}, sample {n})"
        feeds = check_feeds(found, inputs, where, axes)
        yield f"{SAMPLE}{n:02}", sizes_of(feeds, inputs, where), feeds


def _samples(context: StepContext, entrypoint: Entrypoint, most: int) -> list[object]:
    owner = "the samples'"
    made = call_entrypoint(context.load(entrypoint), entrypoint, context.where, owner=owner)

    def collect() -> list[object] | None:
        wrong = isinstance(made, Mapping) or not isinstance(made, Iterable)
        return None if wrong else [own_copy(each) for each in islice(made, most)]

    found = call_user(collect, entrypoint.target, context.where, owner=owner)
    if not found:
        problem = "yields no sample" if found is not None else "does not return an iterable"
        raise StepError(
            f"{entrypoint.target} {problem}",
            where=context.where,
            fix="yield mappings of input name -> array, one a sample",
        )
    return found
