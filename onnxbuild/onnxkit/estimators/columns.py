"""Columns of a table that an estimator takes together: an input each, joined to a matrix inside of the graph.

skl2onnx passes several inputs on to the first operator: most refuse them, and scalers give all of them the first one's
type, which cuts the fractions off floats that come after integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.model.scopes import rename_reads

if TYPE_CHECKING:
    import onnx

MATRIX = "onnxbuild_table"
"""Name of the matrix in the graph."""

_FLOATS = ("float64", "float32")


def matrix_of(parts: Iterable[Any], inputs: Sequence[DummyInput]) -> DummyInput | None:
    """Return the one input that a converter gets in place of several; None where it gets them as they are.

    Args:
        parts: The estimator and those inside of it.
        inputs: Inputs, as the recipe declares them.
    """
    from sklearn.compose import ColumnTransformer

    are_columns = all(len(each.shape) == 2 and each.shape[1] == 1 for each in inputs)  # noqa: PLR2004
    dtypes = {each.dtype for each in inputs}
    if len(inputs) == 1 or not are_columns or "string" in dtypes:
        return None
    if any(isinstance(each, ColumnTransformer) for each in parts):
        return None  # it chooses columns by their names
    dtype = next((each for each in _FLOATS if each in dtypes), "int64")
    return DummyInput(MATRIX, dtype, (inputs[0].shape[0], len(inputs)))


def wider(each: DummyInput) -> DummyInput:
    """Return an input as skl2onnx takes it: most of its converters refuse int32."""
    return replace(each, dtype="int64") if each.dtype == "int32" else each


def widen_inputs(model: onnx.ModelProto, inputs: Sequence[DummyInput]) -> None:
    """Give a graph that takes the wider inputs those of the recipe, in place."""
    from onnx import TensorProto, helper

    for each in inputs:
        if wider(each) == each:
            continue
        taken = f"{each.name}_as_int64"
        for node in model.graph.node:
            rename_reads(node, {each.name: taken})
        cast = helper.make_node("Cast", [each.name], [taken], to=TensorProto.INT64)
        model.graph.node.insert(0, cast)
        for value in model.graph.input:
            if value.name == each.name:
                value.type.tensor_type.elem_type = TensorProto.INT32


def join_columns(model: onnx.ModelProto, inputs: Sequence[DummyInput], matrix: DummyInput) -> None:
    """Give a graph that takes the matrix an input for each column, in place."""
    import numpy as np
    from onnx import helper

    def kind(dtype: str) -> int:
        return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    joined, nodes = [], []
    for each in inputs:
        joined.append(each.name)
        if each.dtype != matrix.dtype:
            joined[-1] = f"{each.name}_as_{matrix.dtype}"
            nodes.append(
                helper.make_node("Cast", [each.name], [joined[-1]], to=kind(matrix.dtype))
            )
    nodes += [helper.make_node("Concat", joined, [matrix.name], axis=1), *model.graph.node]
    del model.graph.input[:], model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.input.extend(
        helper.make_tensor_value_info(each.name, kind(each.dtype), [None, 1]) for each in inputs
    )
