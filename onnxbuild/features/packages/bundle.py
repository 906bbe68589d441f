"""A bundle: the model, its manifest, reports, checksums, a loader and examples; always made."""

from onnxbuild.expansion import cells
from onnxbuild.expansion.delivery import KINDS
from onnxbuild.expansion.feature import Column, Feature

FEATURE: Feature = Feature(
    name="bundle", kinds=KINDS, columns=(Column("size", "", cells.size("model_bytes"), place=10),)
)
