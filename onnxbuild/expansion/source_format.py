"""A form of model that a feature brings for a frontend of another."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.expansion.feature import Feature
from onnxbuild.expansion.model_source import ModelSource


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFormat(Feature):
    """A form in which `model` names a model of another feature's frontend: `model: {NAME: PATH}`.

    Attributes:
        source: How it is read; names the frontend.
    """

    source: ModelSource
