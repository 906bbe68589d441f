"""`optimize`: how the fp32 model is fused; all modes begin with it."""

from onnxbuild.expansion.diagnosis_hints import DiagnosisHints, Milder
from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.fused import SECTION
from onnxbuild.steps import optimize

_LESS = (
    {"num_heads": 0, "hidden_size": 0},
    {"transformer": False},
    {"transformer": False, "level": "basic"},
    {"transformer": False, "level": "none"},
)
"""The first drops the user's own options, which may be wrong."""

FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(name=SECTION, options=optimize.OptimizeOptions, short="level", by_variant=True),
    ),
    kinds=(optimize.KIND,),
    diagnosis=DiagnosisHints(milder=(Milder(optimize.KIND.name, SECTION, _LESS),)),
)
