"""A model from elsewhere to compare a recipe's variants with."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.recipe import Entrypoint


@dataclass(frozen=True, slots=True)
class ComparisonModel:
    """One model.

    Attributes:
        name: In reports; no variant has it.
        shown: As the user named it.
        model: Its files: the model first, then what belongs to it.
        format: Of a PyTorch program; empty for ONNX and ORT format.
    """

    name: str
    shown: str
    model: Entrypoint
    format: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Variants to measure again, and models to compare them with.

    Attributes:
        models: Models from elsewhere.
        measurement_id: Tells one measurement from another: none is taken from the store.
    """

    models: tuple[ComparisonModel, ...]
    measurement_id: str
