"""Run a model that is ONNX already, as it is, to judge variants by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.points import example_sizes
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.rounding import add_rounding_noise, measured_rounding, rounding_at
from onnxbuild.onnxkit.data.feed_checks import refuse_nan
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_feeds import (
    SAMPLE,
    FittingPoints,
    ReferenceOptions,
    reference_feeds,
    write_unusual,
)
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.inspect import held_bytes
from onnxbuild.onnxkit.model.model_files import load_model, save_graph
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.onnxkit.sessions.element_types import load_typed, without_weights
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

if TYPE_CHECKING:
    import onnxruntime


@dataclass(frozen=True, slots=True)
class OnnxReferenceParams:
    """Parameters of a reference run."""

    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


def run(context: StepContext) -> Outcome:
    """Write points.json and one .npz a point: what ONNX Runtime computes without optimizations.

    Raises:
        StepError: It fails at a point, an output holds NaN, or a sample is not as declared.
    """
    params: OnnxReferenceParams = context.params
    session = open_session(context.input("model"), settings=AS_WRITTEN, where=context.where)
    writer = ReferenceWriter(context.output("reference"))
    fitting = FittingPoints(params.inputs, params.axes, partial(_held, context))
    shares: dict[str, float] = {}
    samples = 0
    for name, sizes, feeds in reference_feeds(
        context,
        params.inputs,
        params.axes,
        points=params.options.points,
        seed=params.options.seed,
        samples=params.samples,
        max_samples=params.options.max_samples,
        fitting=fitting,
    ):
        outputs = run_session(session, feeds, f"{context.where}, point '{name}'")
        refuse_nan(outputs, name, context.where)
        if not writer.count:
            shares = _rounding(context, session, feeds)
        rounding = rounding_at(shares, outputs)
        writer.add(ReferencePoint(name, sizes, feeds, outputs, rounding=rounding))
        samples += name.startswith(SAMPLE)
    write_unusual(
        context.output("reference"),
        params.inputs,
        example_sizes(params.axes),
        lambda feeds: run_session(session, feeds, context.where),
        rounding=partial(rounding_at, shares),
    )
    return Outcome(
        {"points": writer.finish(), "samples": samples}, notes=(*fitting.notes, *writer.notes())
    )


def _held(context: StepContext, sizes: Mapping[str, int]) -> int | None:
    model = without_weights(load_model(context.input("model"), weights="left"))
    return held_bytes(model, context.params.inputs, sizes)


def _rounding(
    context: StepContext, exact: onnxruntime.InferenceSession, feeds: Feeds
) -> dict[str, float]:
    """Measure how far rounding alone moves each output; empty where ONNX Runtime refuses the graph with noise."""
    phase("measuring what rounding does to it")
    model = load_typed(context.input("model"), weights="mapped")
    if not add_rounding_noise(model):
        return {}
    try:
        folder = save_graph(model, context.scratch / "noise").parent
        noisy = open_session(folder, settings=AS_WRITTEN, where=context.where)
        return measured_rounding(
            lambda moved, seed: run_session(noisy if seed else exact, moved, context.where), feeds
        )
    except StepError:
        return {}


KIND = StepKind(
    name="onnx-reference",
    version=4,
    params=OnnxReferenceParams,
    inputs=("model",),
    outputs={"reference": "reference"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: () if params.samples is None else (params.samples,),
)
