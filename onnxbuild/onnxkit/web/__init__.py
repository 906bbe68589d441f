"""Web packages: a static folder with ONNX Runtime Web, the model, a module and an example page."""
