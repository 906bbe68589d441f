"""Merge pre- and post-processing into a variant's model: raw inputs in, results out."""

from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from onnxbuild.onnxkit.processing.merge import merge
from onnxbuild.onnxkit.processing.pipeline import Pipeline, fit
from onnxbuild.onnxkit.ready_onnx.probes import load_named
from onnxbuild.onnxkit.sessions.open import check_loads


@dataclass(frozen=True, slots=True)
class MergeProcessingParams:
    """Parameters of a merge.

    Attributes:
        pipeline: The operations.
        inputs: The pipeline's.
        axes: The pipeline's.
    """

    pipeline: Pipeline
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]


def run(context: StepContext) -> Outcome:
    """Write the merged model in canonical form, its outputs' axes named.

    Raises:
        StepError: An operation does not fit the model, or the merged model is not valid, or it fails at a
            size that is declared.
    """
    params: MergeProcessingParams = context.params
    folder = context.output("model")
    model = load_model(context.input("model"), weights="mapped")
    phase("merging the operations")
    fitted = fit(context, params.pipeline, model)
    merge(model, fitted)
    draft = context.scratch / "draft"
    save_model(model, draft)
    faults = checker_faults(draft, context.scratch)
    if faults:
        raise StepError(faults[0].what, where=context.where, fix=faults[0].fix)
    phase("running it at several sizes")
    model = load_named(draft, params.inputs, params.axes, context.where)
    save_model(model, folder)
    check_loads(folder, context.where)
    return Outcome({"operations": len(fitted.operations), "size_bytes": file_bytes(folder)})


KIND = StepKind(
    name="merge-processing",
    version=4,
    params=MergeProcessingParams,
    inputs=("model", "tokenizer/*"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    user_code=True,
    entrypoints=lambda params: params.pipeline.entrypoints,
)
