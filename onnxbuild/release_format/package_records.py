"""The packages of a release: forms of its variants for servers, registries, pages, other languages."""

from collections.abc import Iterator, Mapping
from typing import Any

from onnxbuild.catalog import RELEASED_FORMATS
from onnxbuild.core.graph import Deliverable

PACKAGES = "packages"
"""Key of the packages' records in release.json, and their folder."""
VARIANT = "variant"
"""Key of a record: the variant that a package is made of."""


def package_records(about: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (name, record) of every package that a release.json names, by name."""
    records = about[PACKAGES]
    for name in sorted(records):
        yield name, records[name]


def record_of(each: Deliverable, below: str, belows: Mapping[str, str]) -> dict[str, str]:
    """Return what release.json says of a package; one of several bundles is said to be of the last.

    Args:
        below: What stands in front of a bundle's name: `RECIPE/` of a matrix, `COMPONENT/`, else nothing.
        belows: The same, of each recipe.
    """
    of, variant = f"{below}{each.of}", f"{below}{each.variant}"
    for recipe, name in each.holds:
        of = variant = f"{belows[recipe]}{name}"
    return {
        "recipe": each.recipe,
        "of": of,
        VARIANT: variant,
        "format": each.form,
        "about": RELEASED_FORMATS[each.form].title,
        "folder": f"{PACKAGES}/{below}{each.name}",
        "step": each.bundle.step,
        "output": each.bundle.output,
    }
