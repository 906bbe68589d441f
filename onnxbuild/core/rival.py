"""A model from elsewhere that a recipe's variants are measured beside."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.recipe import Entrypoint


@dataclass(frozen=True, slots=True)
class Rival:
    """One model.

    Attributes:
        name: In reports; no variant has it.
        shown: As the user named it.
        model: Its files: the model first, then what belongs to it.
        format: Of a program beside ONNX; empty for ONNX and ORT format.
    """

    name: str
    shown: str
    model: Entrypoint
    format: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to be measured again, beside what.

    Attributes:
        rivals: Models from elsewhere.
        occasion: Tells one measurement from another: none is taken from the store.
    """

    rivals: tuple[Rival, ...]
    occasion: str
