"""Inputs of a model from elsewhere that are not those that a recipe feeds."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbuild.core.errors import did_you_mean


def nearest_input(found: Sequence[str], declared: Sequence[str]) -> str:
    """A hint where one of a model's inputs is spelled like one that the recipe feeds; else empty.

    Args:
        found: The model's.
        declared: The recipe's.
    """
    missing = [name for name in declared if name not in found]
    for name in found:
        if name not in declared and (hint := did_you_mean(name, missing)):
            return hint
    return ""
