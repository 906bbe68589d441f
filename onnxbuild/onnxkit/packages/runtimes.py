"""Choose the distribution of ONNX Runtime that a Python package requires."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from onnxbuild.providers import named

RuntimeChoice = Literal["auto", "onnxruntime", "onnxruntime-gpu", "none"]
"""Choices of the ONNX Runtime distribution in a recipe."""


def runtime_distribution(providers: Iterable[str], choice: str) -> str:
    """Return the distribution of ONNX Runtime that has the providers; empty for none.

    Args:
        providers: Full names, in order of preference.
        choice: A RuntimeChoice: `auto` for the distribution of the first provider that has one of its own,
            `none` to require none: two of them in one environment overwrite each other's files.
    """
    if choice == "none":
        return ""
    if choice != "auto":
        return choice
    return next(filter(None, (named(each).distribution for each in providers)), "onnxruntime")
