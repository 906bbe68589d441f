"""Run a model on the user's data and keep what GPTQ asks of each weight's inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.core.errors import NotApplicableError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.data.feeds import FeedCache
from onnxbuild.onnxkit.data.recorded_calls import OPTIONAL_CALLS
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.optimize.held_constants import folded_constants
from onnxbuild.onnxkit.quantize.gptq import input_widths, rounded_nodes, write_factors
from onnxbuild.onnxkit.sessions.calibration_feeds import calibration_feeds

if TYPE_CHECKING:
    import onnx

_FEW_SAMPLES = 32
"""GPTQ's authors take 128 texts of 2,048 tokens."""


def run(context: StepContext) -> Outcome:
    """Write a factor for each value of the main graph that `model` multiplies by a constant weight.

    Raises:
        StepError: No weight can be quantized, the data yields nothing, or not what the recipe
            declares, or a value is not finite.
    """
    params: DataParams = context.params
    source = params.source
    model = _load(context)
    widths, nodes = input_widths(model), rounded_nodes(model)
    unobserved = sum(not each.reads_main_graph for each in nodes)
    del model
    if not nodes:
        raise NotApplicableError(
            "the model has no MatMul or Gemm with a constant fp32 matrix, which GPTQ rounds",
            where=context.where,
            fix="take this variant out of `quantization`",
        )
    kept_feeds = FeedCache(context.scratch / "feeds")
    samples = sum(1 for _ in kept_feeds.keep(calibration_feeds(context, source, params.samples)))
    if not samples:
        raise source.nothing(params.samples, context.where)
    notes = []
    if unobserved:
        notes.append(
            f"{unobserved} of {len(nodes)} matrices multiply a value that is computed inside an If, "
            "Loop or Scan, which GPTQ can't observe: these are rounded to the nearest"
        )
    if source.is_random:
        notes.append("`data: dummy` is no data: GPTQ makes up for errors on what models never see")
    elif samples < min(_FEW_SAMPLES, params.samples):
        notes.append(f"{samples} samples are few for GPTQ; {_FEW_SAMPLES} and more are usual")
    write_factors(
        lambda: _load(context),
        widths,
        lambda: kept_feeds,
        context.output("hessians"),
        scratch=context.scratch,
        where=context.where,
    )
    return Outcome({"samples": samples, "values": len(widths)}, notes=tuple(notes))


def _load(context: StepContext) -> onnx.ModelProto:
    return load_model(folded_constants(context), weights="mapped")


KIND = StepKind(
    name="hessians",
    version=5,
    params=DataParams,
    inputs=("model", OPTIONAL_CALLS),
    outputs={"hessians": "hessians"},
    toolchain=("onnx", "onnxruntime", "numpy", "torch"),
    run=run,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: (params.data,),
)
