"""The loop: what is up to date and why not, who is next, what is recorded; knows no ONNX."""
