"""Node packages: npm packages that hold a model, run by onnxruntime-node."""
