"""Formats that are made of an ONNX model ahead of time, for one runtime or machine."""
