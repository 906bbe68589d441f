"""The weights that differ between two models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.external_data import weight_array
from onnxbuild.onnxkit.model.graphs import initializers
from onnxbuild.onnxkit.model.model_files import load_model

if TYPE_CHECKING:
    import onnx


def retyped_weights(expected: onnx.ModelProto, actual: onnx.ModelProto) -> set[str]:
    """Return the names of the expected model's weights that have another type in the other model.

    Those that the other model computes, such as by a Cast from bfloat16, are among them.

    Args:
        expected: A model.
        actual: The other.
    """
    types = {each.name: each.data_type for each in initializers(actual)}
    return {each.name for each in initializers(expected) if types.get(each.name) != each.data_type}


def edited_weights(expected: Path, actual: Path) -> set[str]:
    """Return the names of the expected model's weights that have other elements in the other model.

    Args:
        expected: Folder of a model.
        actual: Folder of the other.

    Raises:
        StepError: A model can't be read.
    """
    models = [load_model(each, weights="mapped") for each in (expected, actual)]
    others = {each.name: each for each in initializers(models[1])}
    return {
        each.name
        for each in initializers(models[0])
        if each.name in others and not _equal(each, others[each.name])
    }


def _equal(one: onnx.TensorProto, other: onnx.TensorProto) -> bool:
    """Return whether two tensors have the same type, shape and elements, bit by bit."""
    if (one.data_type, list(one.dims)) != (other.data_type, list(other.dims)):
        return False
    if one.string_data:
        return list(one.string_data) == list(other.string_data)
    return weight_array(one).tobytes() == weight_array(other).tobytes()
