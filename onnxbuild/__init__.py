"""Declarative, cached, reproducible builds of ONNX models.

from onnxbuild import Request, build
result = build(Request((Path("recipes/bert.yaml"),)))
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = (
    False  # as in typing, which takes longer to import than all else that is loaded here
)
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"
_HOMES = {
    "ReleaseRequest": "onnxbuild.release.release",
    "Request": "onnxbuild.api",
    "build": "onnxbuild.api",
    "load_recipe": "onnxbuild.api",
    "make_release": "onnxbuild.release.release",
    "plan": "onnxbuild.api",
    "reproduce": "onnxbuild.reproduction.reproduce",
}
__all__ = [
    "ReleaseRequest",
    "Request",
    "__version__",
    "build",
    "load_recipe",
    "make_release",
    "plan",
    "reproduce",
]


def __getattr__(name: str) -> Any:
    """The Python API, loaded when it is used: the command line starts without it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'onnxbuild' has no attribute '{name}'")
