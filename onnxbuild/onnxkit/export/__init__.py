"""From a PyTorch module to canonical ONNX."""
