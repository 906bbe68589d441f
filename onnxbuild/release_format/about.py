"""release.json: what a release is, and where in it everything is; the order of versions."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild import __version__
from onnxbuild.catalog import all_features
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import Deliverable, Graph
from onnxbuild.core.recipe import Recipe
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.release_format.bundles import SECTION_OF, SECTIONS
from onnxbuild.release_format.layout import (
    GOLDEN_FOLDER,
    REPORTS_FOLDER,
    SCHEMA_VERSION,
    SCHEMA_VERSION_KEY,
)
from onnxbuild.release_format.package_records import PACKAGES, record_of

_Parts = list[tuple[int, int, str]]


def version_order(version: str) -> tuple[_Parts, bool, _Parts]:
    """Return a key that sorts versions: numbers as numbers, 1.0.0-rc.1 before 1.0.0 (semver.org, 11).

    Args:
        version: A release's: `1.0.0`, `2.1.0-rc.1`.
    """
    main, _, rest = version.partition("+")[0].partition("-")
    return _parts(main), not rest, _parts(rest)


def _parts(text: str) -> _Parts:
    pieces = re.findall(r"\d+|[^\d.]+", text)
    return [(0, int(each), "") if each.isdigit() else (1, 0, each) for each in pieces]


EPOCH_MAX_S = 253_402_300_799  # the last second of the year 9999
VERSION_PATTERN = "[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}"


@dataclass(frozen=True, slots=True)
class Title:
    """Name, version and recipe of a release.

    Attributes:
        name: See `name_of`.
        version: As given.
        recipe: Path of the recipe's file in the release.
        lock: Path of its lock in the release.
        bases: Paths of the recipes that it extends in the release, the nearest first.
    """

    name: str
    version: str
    recipe: str
    lock: str
    bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseSource:
    """Source of a release.

    Attributes:
        commit: In full; None if there is none.
        changed: Files that are not as the commit has them, relative to the repository's root.
        outside: Files that were used and are outside of the repository, as the lock names them.
        epoch_s: The time that all its files get, in seconds since 1970.
        notices: What whoever releases should know.
    """

    commit: str | None
    changed: tuple[str, ...]
    epoch_s: int
    outside: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def dirty(self) -> bool:
        """Whether the commit differs from what was built."""
        return self.commit is None or bool(self.changed)


def check_version(version: str) -> None:
    """Refuse a version that can't stand in a file's name.

    Raises:
        UsageError: It is none.
    """
    if not re.fullmatch(VERSION_PATTERN, version):
        raise UsageError(
            f"'{version}' is no version; expected at most 64 letters, digits, '.', '+', '_' and "
            "'-', starting with a letter or a digit",
            fix="write it like 1.0.0 or 2.1.0-rc.1",
        )


def name_of(recipes: Sequence[Recipe], stem: str) -> str:
    """Return the name of a recipe file's releases: that of its recipe, of a matrix the file's.

    Args:
        recipes: What the file holds.
        stem: The file's name, without its ending.
    """
    return stem if _is_combination(recipes[0]) else recipes[0].base


def _is_combination(recipe: Recipe) -> bool:
    """Return whether a recipe is one combination of a matrix, NAME@key=value."""
    return RecipeName.parse(recipe.name).member != recipe.component


def _below(recipe: Recipe) -> str:
    """Return what is in front of a recipe's places: `NAME@key=value/` of a matrix, `COMPONENT/`, else nothing."""
    place = recipe.name if _is_combination(recipe) else recipe.component
    return f"{place}/" if place else ""


def about(
    title: Title,
    recipes: Sequence[Recipe],
    graph: Graph,
    source: ReleaseSource,
    packaged: Collection[str],
) -> dict[str, Any]:
    """The release.json.

    Args:
        recipes: All that its file holds.
        source: Where it comes from.
        packaged: Names of the recipes whose packages it holds.
    """
    bundles: dict[str, dict[str, Any]] = {section.key: {} for section in SECTIONS}
    reports = {}
    packages = {}
    belows = {each.name: _below(each) for each in recipes}
    for recipe in recipes:
        below = _below(recipe)
        for each in graph.deliverables:
            if each.recipe != recipe.name or each.family.is_page:
                continue
            section, name = SECTION_OF.get(each.family), each.name
            if section is None:
                if recipe.name in packaged:
                    packages[f"{below}{name}"] = record_of(each, below, belows)
                continue
            bundles[section.key][f"{below}{name}"] = {
                "recipe": recipe.name,
                "variant": name,
                "bundle": f"{section.folder}/{below}{name}",
                "step": each.bundle.step,
                **_judged_by(below, each, graph),
                "benchmarks": compared_in(each, graph),
            }
        for name in _reported(recipe, graph):
            file = graph.addresses[name].local
            reports[f"{REPORTS_FOLDER}/{below}{file}.json"] = graph.resolve(name)
    return {
        SCHEMA_VERSION_KEY: SCHEMA_VERSION,
        "name": title.name,
        "version": title.version,
        "onnxbuild": __version__,
        "source": {
            "commit": source.commit,
            "dirty": source.dirty,
            "changed": list(source.changed),
            "outside": list(source.outside),
        },
        "epoch_s": source.epoch_s,
        "recipe": title.recipe,
        "lock": title.lock,
        "bases": list(title.bases),
        **bundles,
        PACKAGES: packages,
        "reports": reports,
    }


def _judged_by(below: str, each: Deliverable, graph: Graph) -> dict[str, str]:
    """The golden files of a bundle, and the step that made them; some sizes alone have their own."""
    judges = (graph.steps[name].inputs for name in each.judged_by)
    reference = next(inputs["reference"].step for inputs in judges if "reference" in inputs)
    golden = f"{GOLDEN_FOLDER}/{below}".removesuffix("/")
    at = graph.addresses[reference]
    if at.variant:
        golden = f"{golden}-{at.owner}"
    return {"golden": golden, "reference": reference}


def compared_in(each: Deliverable, graph: Graph) -> dict[str, str]:
    """Target -> the step that measures a bundle there, side by side with the others."""
    kinds = {found.side_by_side.kind for found in all_features() if found.side_by_side}
    return {
        target: step
        for target, steps in each.measured_by.items()
        for step in steps
        if graph.steps[graph.resolve(step)].kind in kinds
    }


def _reported(recipe: Recipe, graph: Graph) -> Iterator[str]:
    """Steps whose reports a release shows on their own: checks, measurements, the reference's own score."""
    always = {kind for each in all_features() for kind in each.released}
    if_shared = {kind for each in all_features() for kind in each.released_if_shared}
    for name, at in sorted(graph.addresses.items()):
        if at.recipe == recipe.name:
            kind = graph.steps[graph.resolve(name)].kind
            if kind in always or (kind in if_shared and not at.bundle):
                yield name
