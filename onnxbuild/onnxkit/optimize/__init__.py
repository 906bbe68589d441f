"""ONNX Runtime's offline graph tools."""
