"""What steps do with ONNX models and their runtimes."""
