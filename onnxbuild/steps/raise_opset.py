"""Raise the opset of a model that is ONNX already."""

from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.export.agreement import disagreement, run_at_probes
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, placement, save_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from onnxbuild.onnxkit.model.raised_opset import raise_opset
from onnxbuild.onnxkit.sessions.open import check_loads


@dataclass(frozen=True, slots=True)
class RaiseOpsetParams:
    """Parameters of a raise.

    Attributes:
        opset: What the model gets, of ONNX's own domain.
        inputs: What the recipe feeds: both models are run on values made from it.
        axes: At which sizes.
    """

    opset: int
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]


def run(context: StepContext) -> Outcome:
    """Write the model in the opset; the gates hold what follows against the model as it was.

    A note says if it computes something else, so that no other step is blamed for it.

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
    phase("comparing it with the model as it was")
    before_it = run_at_probes(source, params.inputs, params.axes, context.where)
    reason = disagreement(before_it, target, context.where)
    return Outcome(
        {"opset": opset_of(model), "size_bytes": file_bytes(target)},
        notes=(_changed(before, params.opset, reason),) if reason else (),
    )


def _changed(before: int, opset: int, reason: str) -> str:
    return (
        f"ONNX's version converter changed what the model computes: from opset {before} to {opset}, {reason}; "
        "convert the model again with this opset where it was made"
    )


KIND = StepKind(
    name="raise-opset",
    version=3,
    params=RaiseOpsetParams,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)
