"""Prepare a model for static quantization: infer shapes, fold and fuse what would hide scales."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.canonical import canonicalize
from onnxbuild.onnxkit.foreign import ToolError, call_tool
from onnxbuild.onnxkit.graphs import all_nodes
from onnxbuild.onnxkit.model_files import (
    WEIGHTS_FILE,
    file_bytes,
    load_model,
    model_path,
    save_model,
)
from onnxbuild.onnxkit.sessions import open_session


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
    folder = context.scratch / "preprocessed"
    folder.mkdir()
    try:
        call_tool(lambda: _preprocess(source, folder, symbolic=True))
    except ToolError as error:
        notes.append(f"shapes are inferred without symbols: {error}")
        try:
            call_tool(lambda: _preprocess(source, folder, symbolic=False))
        except ToolError as worse:
            raise StepError(
                f"the model can't be preprocessed: {worse}",
                where=context.where,
                fix="write `mode: dynamic`, which needs no preprocessing",
            ) from worse
    before = sum(1 for _ in all_nodes(load_model(source, weights=False)))
    model = load_model(folder)
    canonicalize(model)
    after = sum(1 for _ in all_nodes(model))
    save_model(model, target)
    open_session(target, optimize=False, where=context.where)
    return Outcome(
        metrics={
            "nodes_before": before,
            "nodes_after": after,
            "size_bytes": file_bytes(target),
        },
        notes=tuple(notes),
    )


def _preprocess(source: Path, folder: Path, *, symbolic: bool) -> None:
    from onnxruntime.quantization.shape_inference import quant_pre_process

    quant_pre_process(
        str(model_path(source)),
        str(folder / MODEL_FILE),
        skip_symbolic_shape=not symbolic,
        save_as_external_data=(source / WEIGHTS_FILE).exists(),
        all_tensors_to_one_file=True,
        external_data_location=WEIGHTS_FILE,
    )


KIND = StepKind(
    name="preprocess",
    version=1,
    params=PreprocessParams,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy", "sympy"),
    run=run,
)
