"""The steps that several frontends share: the model as ONNX, its check, what it is held against."""
