"""Make a variant of its mode and what a recipe, or a search, says of it."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.core.recipe import Location, Variant
from onnxbuild.expansion.feature import Mode


def variant_of(
    name: str,
    mode: Mode,
    options: object,
    *,
    sections: Mapping[str, object],
    location: Location,
    search: str = "",
    trial: str = "",
) -> Variant:
    """A variant, with what its mode says of it.

    Args:
        name: Its name.
        mode: Its mode.
        options: The mode's.
        sections: Its own, over the recipe's.
        location: Where the recipe declares it.
        search: Of a trial, the variant that is searched for.
        trial: Of a trial, its name.
    """
    precision = mode.precision_of(options) if mode.precision_of else mode.precision
    return Variant(
        name=name,
        mode=mode.name,
        options=options,
        sections=sections,
        location=location,
        precision=precision,
        tolerances=mode.tolerances[precision],
        searches=mode.trials is not None,
        search=search,
        trial=trial,
    )
