"""Declarative, cached, reproducible builds of ONNX models.

import onnxbuild as ob
build = ob.run("recipes/bert.yaml", only=["int8"])
session = build["int8"].session()
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
    "Build": "onnxbuild.python.build",
    "BuildError": "onnxbuild.core.errors",
    "FailedBuildError": "onnxbuild.python.failure",
    "Metrics": "onnxbuild.python.metrics",
    "RecipeErrors": "onnxbuild.core.errors",
    "ReleaseRequest": "onnxbuild.release.release",
    "Request": "onnxbuild.building.api",
    "UsageError": "onnxbuild.core.errors",
    "BuiltVariant": "onnxbuild.python.variant",
    "build": "onnxbuild.building.api",
    "load_recipe": "onnxbuild.building.api",
    "make_release": "onnxbuild.release.release",
    "plan": "onnxbuild.building.api",
    "reproduce": "onnxbuild.reproduction.reproduce",
    "run": "onnxbuild.python.run",
}
__all__ = [
    "Build",
    "BuildError",
    "BuiltVariant",
    "FailedBuildError",
    "Metrics",
    "RecipeErrors",
    "ReleaseRequest",
    "Request",
    "UsageError",
    "__version__",
    "build",
    "load_recipe",
    "make_release",
    "plan",
    "reproduce",
    "run",
]


def __getattr__(name: str) -> Any:
    """The Python API, loaded when it is used: the command line starts without it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'onnxbuild' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The API and nothing else: rooms that something imported are no part of it."""
    return sorted(__all__)
