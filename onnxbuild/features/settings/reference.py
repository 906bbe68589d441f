"""`reference`: the points and samples that the user's own model is run on, whatever the frontend."""

from __future__ import annotations

from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.reference_plan import SECTION
from onnxbuild.steps.reference import ReferenceOptions

FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(
            name=SECTION,
            options=ReferenceOptions,
            callables={
                "samples": (
                    "samples",
                    "callable that yields real feeds: input name -> array",
                ),
            },
        ),
    ),
)
