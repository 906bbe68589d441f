"""`release`: what a release is held to."""

from __future__ import annotations

from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.release_options import ReleaseOptions

FEATURE = Feature(name="release", sections=(Section(name="release", options=ReleaseOptions),))
