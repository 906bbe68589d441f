"""Which tolerances a variant is judged by."""

from __future__ import annotations

import dataclasses
from typing import Any

from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.steps import validate


def tolerances_of(recipe: Recipe, variant: Variant) -> validate.VariantTolerances:
    """A variant's tolerances: its own, else the recipe's for its precision, else the default."""
    section: Any = recipe.sections["validate"]
    layers = (
        validate.DEFAULT_TOLERANCES[variant.precision],
        getattr(section, variant.precision),
        variant.sections.get("validate"),
    )
    merged: dict[str, Any] = {"outputs": {}}
    for layer in layers:
        if layer is None:
            continue
        for field in dataclasses.fields(validate.Tolerance):
            value = getattr(layer, field.name)
            if value is not None:
                merged[field.name] = value
        merged["outputs"].update(getattr(layer, "outputs", {}))
    return validate.VariantTolerances(**merged)
