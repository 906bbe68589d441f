"""WordPiece tokenizers as operators of ONNX Runtime: from strings to padded ids."""
