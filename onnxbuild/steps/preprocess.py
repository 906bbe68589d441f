"""Prepare a model for static quantization: infer shapes, fold and fuse what would hide scales."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from onnxbuild.core.errors import NotApplicableError, StepError
from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_graph, save_model
from onnxbuild.onnxkit.optimize.offline_optimization import ToolError, call_tool, optimize_offline
from onnxbuild.onnxkit.sessions.open import open_session


@dataclass(frozen=True, slots=True)
class PreprocessParams:
    """Nothing to steer."""


def run(context: StepContext) -> Outcome:
    """Preprocess `model`: symbolic shapes, ONNX Runtime's basic fusions, onnx's shape inference.

    Raises:
        StepError: The model can't be preprocessed.
    """
    source, target = context.input("model"), context.output("model")
    notes: list[str] = []
    given = load_model(source, weights="mapped")
    before = sum(1 for _ in all_nodes(given))
    try:
        given = call_tool(lambda: _infer_symbols(given))
    except ToolError:
        traceback.print_exc()
        notes.append(
            "shapes with symbols stay unknown: ONNX Runtime's symbolic shape inference does not take "
            "this model (its error is in the step's log)"
        )
    try:
        model = _infer_and_fold(given, context)
    except StepError as error:
        raise NotApplicableError(
            f"the model can't be preprocessed: {error.what}",
            where=context.where,
            fix="write `mode: dynamic`, which needs no preprocessing",
        ) from error
    canonicalize(model)
    after = sum(1 for _ in all_nodes(model))
    save_model(model, target)
    del model
    open_session(target, optimize=False, lean=True, where=context.where)
    return Outcome(
        metrics={"nodes_before": before, "nodes_after": after, "size_bytes": file_bytes(target)},
        notes=tuple(notes),
    )


def _infer_symbols(model: onnx.ModelProto) -> onnx.ModelProto:
    """ONNX Runtime's symbolic shape inference; weights stay where they are.

    This and `_infer_and_fold` are what onnxruntime.quantization.quant_pre_process does, which reads
    all weights and copies them several times.
    """
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    inferred: onnx.ModelProto = SymbolicShapeInference.infer_shapes(
        model, int_max=2**31 - 1, auto_merge=False, guess_output_rank=False, verbose=0
    )
    return inferred


def _infer_and_fold(model: onnx.ModelProto, context: StepContext) -> onnx.ModelProto:
    """ONNX Runtime's basic optimizations, then onnx's shape inference.

    Raises:
        StepError: ONNX Runtime refuses the model, or its shapes contradict each other.
    """
    save_graph(model, context.scratch / "symbolic")
    folder = optimize_offline(
        context.scratch / "symbolic", context.scratch / "basic", level="basic", where=context.where
    )
    inferred = folder / f"inferred-{MODEL_FILE}"  # next to the weights
    try:
        call_tool(
            lambda: onnx.shape_inference.infer_shapes_path(str(folder / MODEL_FILE), str(inferred))
        )
    except ToolError as error:
        raise NotApplicableError(str(error), where=context.where) from error
    return load_model(inferred, weights="mapped")


KIND = StepKind(
    name="preprocess",
    version=1,
    params=PreprocessParams,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy", "sympy"),
    run=run,
    host_bound=True,
)
