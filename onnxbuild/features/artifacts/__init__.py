"""What is made of an ONNX model ahead of time, for one runtime or machine."""
