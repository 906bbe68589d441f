"""Figures of CUDA and TensorRT: precisions, IO binding and CUDA graphs, by one command: `python -m benchmarks.gpu`.

It needs Python, NumPy, onnx and ONNX Runtime, nothing else of this project: docs/gpu.md.
"""
