"""Raise the opset of a model that is ONNX already."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.checker import checker_faults
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, placement, save_model
from onnxbuild.onnxkit.ready_onnx.raise_opset import raise_opset
from onnxbuild.onnxkit.sessions.open import check_loads


@dataclass(frozen=True, slots=True)
class RaiseOpsetParams:
    """The opset of ONNX's own domain that the model gets."""

    opset: int


def run(context: StepContext) -> Outcome:
    """Write the model in the opset; the gates hold what follows against the model as it was.

    Raises:
        StepError: The model has a later opset, or ONNX's version converter fails.
    """
    params: RaiseOpsetParams = context.params
    source, target = context.input("model"), context.output("model")
    model = load_model(source, weights="mapped")
    before = opset_of(model)
    model = raise_opset(model, params.opset, context.where)
    canonicalize(model)
    save_model(model, target, external=placement(source))
    faults = checker_faults(target, context.scratch)
    if faults:
        raise StepError(
            f"opset {params.opset}: {faults[0].what}",
            where=context.where,
            fix=f"remove `opset`: the model stays in opset {before}",
        )
    check_loads(target, context.where)
    return Outcome({"opset": opset_of(model), "size_bytes": file_bytes(target)})


KIND = StepKind(
    name="raise-opset",
    version=1,
    params=RaiseOpsetParams,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)
