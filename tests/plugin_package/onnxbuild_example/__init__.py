"""A plug-in of onnxbuild: one module for each thing that it brings."""

from onnxbuild_example import archive, ready, rounded, size, toaster

FEATURES = (rounded.FEATURE, archive.FEATURE, size.FEATURE, ready.FEATURE, toaster.PROVIDER)
