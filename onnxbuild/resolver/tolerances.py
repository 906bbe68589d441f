"""Which tolerances a variant or a format is judged by."""

from __future__ import annotations

import dataclasses
from typing import Any

from onnxbuild.core.recipe import Format, Precision, Recipe, Variant
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES, Tolerance, VariantTolerances


def tolerances_of(recipe: Recipe, variant: Variant) -> VariantTolerances:
    """A variant's tolerances: its own, else the recipe's for its precision, else the default."""
    return _merged(recipe, variant.precision, variant.sections.get("validate"))


def tolerances_of_format(recipe: Recipe, each: Format) -> VariantTolerances:
    """A format's tolerances: its own, else the recipe's for fp32, else the default."""
    return _merged(recipe, "fp32", each.tolerances)


def _merged(recipe: Recipe, precision: Precision, own: object) -> VariantTolerances:
    section: Any = recipe.sections["validate"]
    merged: dict[str, Any] = {"outputs": {}}
    asked = [layer for layer in (getattr(section, precision), own) if layer is not None]
    layers: list[Any] = [DEFAULT_TOLERANCES[precision], *asked]
    if any(layer.cosine_min is not None for layer in layers[1:]):
        # Whoever allows a worse direction allows the noise that goes with it.
        layers[0] = dataclasses.replace(layers[0], sqnr_db_min=None)
    for layer in layers:
        for field in dataclasses.fields(Tolerance):
            value = getattr(layer, field.name)
            if value is not None:
                merged[field.name] = value
        merged["outputs"].update(getattr(layer, "outputs", {}))
    return VariantTolerances(**merged)
