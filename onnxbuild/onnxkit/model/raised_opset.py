"""A model in a later opset, by ONNX's version converter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.onnxkit.model.graphs import all_nodes, element_count, keep, opset_of

if TYPE_CHECKING:
    import onnx

_LARGE = 1024
"""Elements. Smaller weights may be what an attribute became, such as the axes of a Squeeze: the converter
reads those."""


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
            fix=f"write `opset: {found}`",
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
            fix=f"write `opset: {found}`",
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
