"""A bundle: the model, its manifest, reports, checksums, a loader and examples; always made."""

from __future__ import annotations

from onnxbuild.expansion.delivery import KINDS
from onnxbuild.expansion.feature import Feature

FEATURE = Feature(name="bundle", kinds=KINDS)
