"""Keys of a recipe that an estimator's file declares: one input of float32, as wide as its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.data.completed_axes import BATCH, completed_axes, mapping_in, sizes_in
from onnxbuild.onnxkit.estimators.outlines import EstimatorFileError, EstimatorOutline

FEATURES = "features"
"""The input of a file that says how wide its rows are."""


def declared_by(
    name: str, outline: EstimatorOutline, written: Mapping[str, Any]
) -> dict[str, Any]:
    """The keys of a recipe that a file says: `dummy_inputs`, `dynamic_axes`.

    Args:
        name: The file's.
        outline: Outline of the file.
        written: The recipe as it is written.

    Raises:
        SourceError: It does not say how wide its rows are, and neither does the recipe.
    """
    inputs = mapping_in(written, "dummy_inputs")
    declared: dict[str, Any] = {}
    if not inputs:
        if not outline.features:
            raise SourceError(
                f"{name} does not say what its inputs are",
                "write `dummy_inputs: {features: {dtype: float32, shape: [batch, COLUMNS]}}`; for texts, "
                "`{text: {dtype: string, shape: [batch]}}`",
            )
        inputs = {FEATURES: {"dtype": "float32", "shape": [BATCH, outline.features]}}
        declared["dummy_inputs"] = inputs
    shapes = [sizes_in(mapping_in(inputs, each).get("shape")) for each in inputs]
    axes = completed_axes(shapes, mapping_in(written, "dynamic_axes"))
    if axes:
        declared["dynamic_axes"] = axes
    return declared


def look_with(
    outline_of: Callable[[Path], EstimatorOutline],
) -> Callable[[Path], EstimatorOutline]:
    """Return a `ModelSource.look` of a reader of outlines."""

    def look(path: Path) -> EstimatorOutline:
        try:
            return outline_of(path)
        except EstimatorFileError as error:
            fix = "check that the file is complete; git-lfs pointers are a frequent cause"
            raise SourceError(f"{path.name} can't be read: {error}", fix) from error

    return look


def recognized_by(
    outline_of: Callable[[Path], EstimatorOutline], suffixes: tuple[str, ...]
) -> Callable[[Path], bool]:
    """Return a `ModelSource.recognizes` for files whose names end as many others do."""

    def recognizes(path: Path) -> bool:
        if path.suffix.lower() not in suffixes or not path.is_file():
            return False
        try:
            outline_of(path)
        except (EstimatorFileError, OSError):
            return False
        return True

    return recognizes
