"""Declarative, cached, reproducible builds of ONNX models.

from onnxbuild import Request, build
result = build(Request((Path("recipes/bert.yaml"),)))
"""

import importlib
from typing import Any

__version__ = "0.1.0"
_HOMES = {
    "Request": "onnxbuild.api",
    "build": "onnxbuild.api",
    "load_recipe": "onnxbuild.api",
    "plan": "onnxbuild.api",
    "reproduce": "onnxbuild.release.reproduce",
}
__all__ = ["Request", "__version__", "build", "load_recipe", "plan", "reproduce"]


def __getattr__(name: str) -> Any:
    """The Python API, loaded when it is used: the command line starts without it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'onnxbuild' has no attribute '{name}'")
