"""Run an estimator at several points and keep inputs and outputs to judge variants by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.points import example_sizes
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.feed_checks import refuse_nan
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE, reference_feeds, write_unusual
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.estimators.categories import categories_of, with_categories
from onnxbuild.onnxkit.estimators.made import LIGHTGBM, SKLEARN, XGBOOST, make_estimator
from onnxbuild.onnxkit.estimators.outputs import compute, named_outputs
from onnxbuild.onnxkit.estimators.thresholds import rows_on_threshold

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class EstimatorReferenceParams:
    """Parameters of a reference run.

    Attributes:
        frontend: `sklearn`, `xgboost` or `lightgbm`.
        model: The callable, or the estimator's file.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes all that the estimator has.
        axes: As the variant takes them.
        samples: A callable of real samples; None for none.
        points: More points, as the recipe writes them.
        seed: Of the dummy inputs.
        max_samples: How many samples are used.
    """

    frontend: str
    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    points: tuple[dict[str, int], ...]
    seed: int
    max_samples: int


def run(context: StepContext) -> Outcome:
    """Write points.json and one .npz a point: what the estimator itself computes, and which rows lie on a threshold.

    Raises:
        StepError: The estimator can't be had, fails at a point or gives NaN, or a sample is not as declared.
    """
    params: EstimatorReferenceParams = context.params
    estimator = make_estimator(context, params.model, params.frontend)
    every = {each.name: each for each in named_outputs(estimator, params.outputs, context.where)}
    outputs = [every[name] for name in params.outputs or every]
    categories = categories_of(estimator)
    writer = ReferenceWriter(context.output("reference"))
    samples = rows = on_threshold = 0

    def computed(feeds: Feeds) -> dict[str, np.ndarray]:
        return compute(estimator, outputs, params.inputs, feeds, context.where)

    for name, sizes, feeds in reference_feeds(
        context,
        params.inputs,
        params.axes,
        points=params.points,
        seed=params.seed,
        samples=params.samples,
        max_samples=params.max_samples,
    ):
        if not name.startswith(SAMPLE):
            feeds = with_categories(feeds, params.inputs, categories)  # noqa: PLW2901
        found = computed(feeds)
        refuse_nan(found, name, context.where, whose="estimator")
        moved = rows_on_threshold(computed, feeds)
        touching = moved.mask(len(next(iter(feeds.values()))))
        writer.add(ReferencePoint(name, sizes, feeds, found, touching, moved=moved))
        samples += name.startswith(SAMPLE)
        rows += len(touching)
        on_threshold += int(touching.sum())
    write_unusual(
        context.output("reference"),
        params.inputs,
        example_sizes(params.axes),
        computed,
        moved=lambda feeds: rows_on_threshold(computed, feeds),
    )
    metrics = {
        "points": writer.finish(),
        "samples": samples,
        "rows": rows,
        "rows_on_threshold": on_threshold,
    }
    return Outcome(metrics, notes=writer.notes())


def _entrypoints(params: EstimatorReferenceParams) -> tuple[Entrypoint, ...]:
    return (params.model,) if params.samples is None else (params.model, params.samples)


def _kind(frontend: str, *packages: str) -> StepKind:
    return StepKind(
        name=f"{frontend}-reference",
        version=4,
        params=EstimatorReferenceParams,
        inputs=(),
        outputs={"reference": "reference"},
        toolchain=("numpy", *packages, "scikit-learn"),
        run=run,
        host_bound=True,
        user_code=True,
        entrypoints=_entrypoints,
    )


KINDS = {
    SKLEARN: _kind(SKLEARN),
    XGBOOST: _kind(XGBOOST, "xgboost"),
    LIGHTGBM: _kind(LIGHTGBM, "lightgbm"),
}
"""Step kinds by frontend."""
