"""Graphs of the user's own as operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import graphs_below, opset_of
from onnxbuild.onnxkit.model.inspect import dimensions, dtype_name
from onnxbuild.onnxkit.processing.values import ValueType

if TYPE_CHECKING:
    import onnx


def custom_graphs(
    context: StepContext, entrypoint: Entrypoint, opset: int
) -> tuple[onnx.ModelProto, ValueType]:
    """Call the user's callable; return its model, and what that gives.

    Args:
        context: Of the step.
        entrypoint: Returns an onnx.ModelProto of one input and one output, without functions.
        opset: The model's.

    Raises:
        StepError: It returns something else.
    """
    import onnx

    make = context.load(entrypoint)
    made = call_entrypoint(make, entrypoint, context.where, owner="the operation's")
    if not isinstance(made, onnx.ModelProto):
        raise _refused(
            context, entrypoint, f"returned {an(made)}; expected an onnx.ModelProto",
            "return onnx.helper.make_model(...), or `to_model_proto()` of an onnxscript function",
        )  # fmt: skip
    canonicalize(made)
    graph = made.graph
    if (len(graph.input), len(graph.output)) != (1, 1) or made.functions:
        counts = f"{len(graph.input)} inputs, {len(graph.output)} outputs and {len(made.functions)} functions"
        raise _refused(
            context, entrypoint, f"returned a model of {counts}; expected one input and one output",
            "compute one value of one value, with functions inlined (onnx.inliner)",
        )  # fmt: skip
    if opset_of(made) != opset:
        raise _refused(
            context, entrypoint, f"returned a model of opset {opset_of(made)}; expected {opset}",
            f"build it with `opset_imports=[onnx.helper.make_opsetid('', {opset})]`",
        )  # fmt: skip
    (value,) = graph.output
    found = dimensions(value)
    shape = None if found is None else tuple(None if each == "?" else each for each in found)
    return made, ValueType(dtype_name(value.type.tensor_type.elem_type), shape)


def _refused(context: StepContext, entrypoint: Entrypoint, what: str, fix: str) -> StepError:
    return StepError(f"{entrypoint.target} {what}", where=context.where, fix=fix)


def prefixed(
    model: onnx.ModelProto, prefix: str, takes: str, gives: Sequence[str]
) -> onnx.GraphProto:
    """A copy of a model's graph whose names don't clash with others.

    Args:
        model: One input.
        prefix: Begins all names inside.
        takes: What its input is called.
        gives: What its outputs are called, in order.
    """
    import onnx

    copy = onnx.GraphProto()
    copy.CopyFrom(model.graph)
    new = {copy.input[0].name: takes}
    new |= {own.name: given for own, given in zip(copy.output, gives, strict=True)}

    def named(name: str) -> str:
        return new.get(name, f"{prefix}/{name}") if name else name

    for graph in graphs_below(copy):
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = named(value.name)
        for node in graph.node:
            node.name = f"{prefix}/{node.name}"
            for field in (node.input, node.output):
                field[:] = [named(each) for each in field]
    return copy
