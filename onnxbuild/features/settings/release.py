"""`release`: what a release is held to."""

from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.limits import SECTION, ReleaseOptions

FEATURE = Feature(name=SECTION, sections=(Section(name=SECTION, options=ReleaseOptions),))
