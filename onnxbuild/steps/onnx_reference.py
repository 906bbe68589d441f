"""Run a model that is ONNX already, as it is, to judge variants by."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.points import example_sizes
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.non_finite import refuse_nan
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE, ReferenceOptions, reference_feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.data.unusual_feeds import write_unusual
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session


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
    samples = 0
    for name, sizes, feeds in reference_feeds(
        context,
        params.inputs,
        params.axes,
        points=params.options.points,
        seed=params.options.seed,
        samples=params.samples,
        max_samples=params.options.max_samples,
    ):
        outputs = run_session(session, feeds, f"{context.where}, point '{name}'")
        refuse_nan(outputs, name, context.where)
        writer.add(ReferencePoint(name, sizes, feeds, outputs))
        samples += name.startswith(SAMPLE)
    write_unusual(
        context.output("reference"),
        params.inputs,
        example_sizes(params.axes),
        lambda feeds: run_session(session, feeds, context.where),
    )
    return Outcome({"points": writer.finish(), "samples": samples}, notes=writer.notes())


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
