"""ONNX models and their runtimes, as steps use them."""
