"""Layered drawings of graphs: where boxes stand and lines run; knows no ONNX."""
