"""ONNX and runtime helpers that only steps use."""
