"""The frameworks, each imported when it is first used: `--help`, `plan` and an up-to-date `run` never load them.

A module names them at its top, as in `from onnxbuild.onnxkit.frameworks import np, torch`. What PyTorch traces or
compiles imports `torch` itself, inside functions: the compiler looks into the globals of what it reads.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["np", "onnx", "onnxruntime", "torch"]

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnxruntime
    import torch
else:

    class _Late(ModuleType):
        """A module that is imported as soon as something of it is asked for."""

        def __getattr__(self, name: str) -> Any:
            found = getattr(importlib.import_module(self.__name__), name)
            setattr(self, name, found)  # the next time, it is an attribute like any other
            return found

    np, onnx, onnxruntime, torch = map(_Late, ("numpy", "onnx", "onnxruntime", "torch"))
