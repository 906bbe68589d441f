"""Names of classes that a recipe's postprocessing has: its models' bundles say them, too."""

from __future__ import annotations

from onnxbuild.core.recipe import Recipe
from onnxbuild.expansion.evaluation import PROCESSING
from onnxbuild.onnxkit.processing.labels import LabelsFile

_FIRST, _LAST = f"{PROCESSING}.postprocess", ".labels.file"


def labels_of(recipe: Recipe) -> tuple[LabelsFile, ...]:
    """Return the files that name the classes of a recipe's models."""
    found = (key for key in recipe.entrypoints if key.startswith(_FIRST) and key.endswith(_LAST))
    return tuple(LabelsFile(recipe.entrypoints[key]) for key in found)
