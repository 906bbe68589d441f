"""Declarative, cached, reproducible builds of ONNX models."""

__version__ = "0.1.0"
