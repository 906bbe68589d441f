"""Folders for onnxruntime-genai: which decoders it runs, and what genai_config.json says of one."""
