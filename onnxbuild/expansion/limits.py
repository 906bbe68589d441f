"""Limits: the tolerances that a variant or a format is judged by, and the budgets of a release."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from onnxbuild.core.params import option
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
        for each in dataclasses.fields(Tolerance):
            value = getattr(layer, each.name)
            if value is not None:
                merged[each.name] = value
        merged["outputs"].update(getattr(layer, "outputs", {}))
    return VariantTolerances(**merged)


def described(tolerance: Tolerance) -> str:
    """Bounds in words: `atol 1e-5, equal_min 1.0`."""
    bounds = ((each.name, getattr(tolerance, each.name)) for each in dataclasses.fields(Tolerance))
    return ", ".join(f"{name} {value:g}" for name, value in bounds if value is not None).replace(
        "e-0", "e-"
    )


SECTION = "release"


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits on how much worse than in the previous release a variant may be (`release --previous`)."""

    size_increase: float | None = option(
        None, help="of the model's files, as a share: 0.05 allows 5 % more", minimum=0
    )
    latency_ratio_increase: float | None = option(
        None,
        help="of the median latency divided by PyTorch's, as a share; compared at every point "
        "measured in both, if both were locked on machines of one kind",
        minimum=0,
    )
    accuracy_drop: float | None = option(
        None, help="of the score of `evaluate`, in its own unit", minimum=0
    )
    error_increase: float | None = option(
        None,
        help="of the greatest absolute difference from the reference, and of the share of elements of "
        "integer outputs that differ, as a share",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """Requirements on a release; no step's key depends on them."""

    budgets: Budgets = field(
        default_factory=Budgets,
        metadata={"help": "how much worse than the previous release a variant may be"},
    )
    packages: bool = option(True, help="whether a release holds the recipe's `packages`, too")
