"""Raise the opset of a model that is ONNX already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.export.agreement import disagreement, run_at_probes
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import all_nodes, element_count, keep, opset_of
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, placement, save_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from onnxbuild.onnxkit.sessions.open import check_loads

if TYPE_CHECKING:
    import onnx


_LARGE = 1024
"""Elements. Smaller weights may be what an attribute became, such as the axes of a Squeeze: the converter
reads those."""


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


def raise_opset(model: onnx.ModelProto, opset: int, where: str) -> onnx.ModelProto:
    """Return the model in a later opset.

    The converter copies a model three times through serialization and fails above 2 GB: large weights
    take no part in it. It loses functions, so their nodes are put in place of the calls before.

    Args:
        model: Loses its large weights, which the result has.
        opset: Not below the model's.
        where: `recipe:step`.

    Raises:
        StepError: The opset is below the model's, or the converter fails.
    """
    import onnx
    import onnx.inliner

    found = opset_of(model)
    if opset == found:
        return model
    if opset < found:
        raise StepError(
            f"opset is {opset}, and the model has opset {found}; it can be raised, not lowered",
            where=where,
            fix=f"write `opset: {found}` or greater, or remove it",
        )
    graph = model.graph
    large = [each for each in graph.initializer if element_count(each) >= _LARGE]
    names = {each.name for each in large}
    set_aside = [onnx.TensorProto.FromString(each.SerializeToString()) for each in large]
    keep(graph.initializer, lambda each: each.name not in names)
    inputs = len(graph.input)
    graph.input.extend(
        onnx.helper.make_tensor_value_info(each.name, each.data_type, list(each.dims))
        for each in set_aside
    )

    def blamed(error: BaseException) -> StepError:
        return StepError(
            f"ONNX's version converter can't take the model from opset {found} to {opset}: "
            f"{message_of(error)}",
            where=where,
            fix=f"remove `opset`: the model stays in opset {found}",
        )

    with external_code(blamed):
        if model.functions:
            _write_defaults(model)
            model = onnx.inliner.inline_local_functions(model, convert_version=True)
        raised = onnx.version_converter.convert_version(model, opset)
    keep(raised.graph.input, lambda each: each.name not in names)
    if len(raised.graph.input) != inputs:
        raise StepError(
            "ONNX's version converter changed the model's inputs",
            where=where,
            fix=f"remove `opset`: the model stays in opset {found}",
        )
    raised.graph.initializer.extend(set_aside)
    return raised


def _write_defaults(model: onnx.ModelProto) -> None:
    """Write the attributes that calls of functions leave at their defaults, in place: ONNX's inliner drops these."""
    defaults = {
        (each.domain, each.name, each.overload): each.attribute_proto for each in model.functions
    }
    for node in all_nodes(model):
        given = {each.name for each in node.attribute}
        for each in defaults.get((node.domain, node.op_type, node.overload), ()):
            if each.name not in given:
                node.attribute.append(each)


KIND = StepKind(
    name="raise-opset",
    version=3,
    params=RaiseOpsetParams,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)
