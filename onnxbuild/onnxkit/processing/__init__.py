"""Pre- and post-processing as plain ONNX operators: typed operations, merged into a model."""
