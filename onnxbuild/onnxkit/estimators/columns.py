"""Columns of a table that an estimator takes together: an input each, joined to a matrix inside of the graph.

skl2onnx passes several inputs on to the first operator: most refuse them, and scalers give all of them the first one's
type, which cuts the fractions off floats that come after integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import DummyInput

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
