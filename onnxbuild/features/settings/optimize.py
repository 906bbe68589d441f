"""`optimize`: how the fp32 model is fused; all modes begin with it."""

from __future__ import annotations

from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.fused import SECTION
from onnxbuild.steps import optimize

FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(name=SECTION, options=optimize.OptimizeOptions, short="level", by_variant=True),
    ),
    kinds=(optimize.KIND,),
)
