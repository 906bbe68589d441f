"""What a search tries, as variants."""

from __future__ import annotations

from onnxbuild.catalog import MODES
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.expansion.variants import variant_of


def trials_of(recipe: Recipe, variant: Variant) -> dict[str, Variant]:
    """Trial name -> the variant that it is, in the order in which a smaller budget cuts them off.

    Args:
        recipe: The variant's.
        variant: One that is searched for; others have none.
    """
    trials = MODES[variant.mode].trials
    found: dict[str, Variant] = {}
    for each in () if trials is None else trials(recipe, variant):
        mode = MODES[each.mode]
        options = None if mode.options is None else mode.options(**each.changes)
        found[each.name] = variant_of(
            f"{variant.name}/{each.name}",
            mode,
            options,
            sections=variant.sections,
            location=variant.location,
            search=variant.name,
            trial=each.name,
        )
    return found
