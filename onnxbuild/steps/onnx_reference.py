"""Run a model that is ONNX already, as it is, to judge variants by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE, ReferenceOptions, reference_feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class OnnxReferenceParams:
    """All that steers a reference run."""

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
        _refuse_nan(outputs, name, context.where)
        writer.add(ReferencePoint(name, sizes, feeds, outputs))
        samples += name.startswith(SAMPLE)
    return Outcome({"points": writer.finish(), "samples": samples})


def _refuse_nan(outputs: Mapping[str, np.ndarray], point: str, where: str) -> None:
    import numpy as np

    for name, array in outputs.items():
        if array.dtype.kind == "f" and bool(np.isnan(array).any()):
            raise StepError(
                f"output '{name}' of the model itself holds NaN at point '{point}'",
                where=where,
                fix="give the inputs the values that it expects (`low`, `high`, `fill` in `dummy_inputs`)",
            )


KIND = StepKind(
    name="onnx-reference",
    version=1,
    params=OnnxReferenceParams,
    inputs=("model",),
    outputs={"reference": "reference"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: () if params.samples is None else (params.samples,),
)
