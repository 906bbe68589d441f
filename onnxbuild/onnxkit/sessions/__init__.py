"""ONNX Runtime sessions: settings, opening, running, here or under another interpreter."""
