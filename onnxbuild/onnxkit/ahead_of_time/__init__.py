"""Models compiled ahead of time: ORT format, host-optimized, EPContext, TensorRT."""
