"""Keys of a recipe, and facts for the converter, from the signature of a framework's model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.core.source_error import about
from onnxbuild.onnxkit.converters.requests import INPUTS, OUTPUTS, RENAME, TF2ONNX_OPSET
from onnxbuild.onnxkit.ready_onnx.declared import recipe_of, renamed
from onnxbuild.onnxkit.ready_onnx.outline import Outline, OutlinedValue


def declared_signature(
    path: Path,
    inputs: tuple[OutlinedValue, ...],
    outputs: tuple[OutlinedValue, ...],
    rename: Mapping[str, str],
    written: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (keys of a recipe, as JSON values; what the converter has to know).

    Args:
        path: The model's, for messages.
        inputs: Of the signature.
        outputs: Of the signature.
        rename: Its names of inputs and outputs -> the recipe's.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: No recipe can declare it.
    """
    rename = renamed(outputs, rename, written)
    opset = written.get("opset")
    as_onnx = Outline(inputs, outputs, opset if type(opset) is int else TF2ONNX_OPSET, ())
    with about(path):
        recipe = recipe_of(as_onnx, rename, written)
    names = {INPUTS: [each.name for each in inputs], OUTPUTS: [each.name for each in outputs]}
    return recipe, {**names, RENAME: rename}
