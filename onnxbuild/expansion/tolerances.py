"""Find the tolerances that a variant or a format is judged by."""

from __future__ import annotations

import dataclasses
from typing import Any

from onnxbuild.core.recipe import Format, Recipe, Variant
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES, Tolerance, VariantTolerances

EXACT = "fp32"
"""The precision of what rounds nothing."""


def tolerances_of(recipe: Recipe, variant: Variant) -> VariantTolerances:
    """A variant's tolerances: its own, else the recipe's for its precision, else its mode's."""
    return _merged(recipe, variant.precision, variant.tolerances, variant.sections.get("validate"))


def tolerances_of_format(recipe: Recipe, each: Format) -> VariantTolerances:
    """A format's tolerances: its own, else the recipe's for fp32, else the default."""
    return _merged(recipe, EXACT, DEFAULT_TOLERANCES[EXACT], each.tolerances)


def _merged(recipe: Recipe, precision: str, default: object, own: object) -> VariantTolerances:
    merged: dict[str, Any] = {"outputs": {}}
    section = getattr(recipe.sections["validate"], precision)
    asked = [layer for layer in (section, own) if layer is not None]
    layers: list[Any] = [default, *asked]
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


def described(tolerance: Tolerance) -> str:
    """Bounds in words: `atol 1e-5, equal_min 1.0`."""
    bounds = ((each.name, getattr(tolerance, each.name)) for each in dataclasses.fields(Tolerance))
    return ", ".join(f"{name} {value:g}" for name, value in bounds if value is not None).replace(
        "e-0", "e-"
    )
