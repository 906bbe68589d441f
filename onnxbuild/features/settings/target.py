"""`target`: the machines that models are made for."""

from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.scope import TargetOptions

FEATURE = Feature(name="target", sections=(Section(name="target", options=TargetOptions),))
