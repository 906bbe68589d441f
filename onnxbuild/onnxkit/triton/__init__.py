"""Model repositories of NVIDIA's Triton Inference Server, with its ONNX Runtime backend."""
