"""ONNX graphs, weights and files: read, written, compared; no session."""
