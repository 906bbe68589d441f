"""ONNX that was made elsewhere: its signature, and its adaptation to what a recipe declares."""
