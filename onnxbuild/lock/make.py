"""A finished build -> its lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from onnxbuild import __version__
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.digest import Digest
from onnxbuild.core.graph import Graph
from onnxbuild.core.recipe import Recipe
from onnxbuild.lock.model import Lock, LockedStep
from onnxbuild.lock.observations import locked_data
from onnxbuild.lock.places import LockPlaces
from onnxbuild.lock.resolved import resolved_recipe


def make_lock(
    recipe: str,
    recipes: Iterable[Recipe],
    *,
    own: Graph,
    actions: Mapping[str, Action],
    results: Mapping[str, ActionResult],
    host: Mapping[str, str],
    python: str,
    choices: Mapping[str, str],
    report_of: Callable[[ActionResult], Any],
) -> Lock:
    """The lock of one recipe file.

    Args:
        recipe: The file, relative to the project's root.
        recipes: What it holds.
        own: The graph of these recipes alone.
        actions: Name of a step of `own` -> what decided it.
        results: Name of a step of `own` -> what it gave.
        host: What of the machine can change numbers.
        python: The Python build.
        choices: Those of `mode: auto`.
        report_of: Reads the report of a step that measures.
    """
    packages: dict[str, str] = {}
    files: dict[str, str] = {}
    sources: dict[str, str] = {}
    folders: dict[str, set[str]] = {}
    steps, measurements = {}, {}
    recipes = tuple(recipes)
    places = LockPlaces(recipes)
    for name in own.steps:
        action, result = actions[name], results[name]
        observed, of_recipe = result.observed, own.addresses[name].recipe
        packages |= {n: digest for n, digest in action.toolchain.items() if n != "python"}
        packages |= observed.distributions
        files |= places.named(of_recipe, {**action.files, **locked_data(action.kind, observed)})
        sources |= places.named(of_recipe, observed.sources)
        for folder, listing in observed.listings.items():
            folders.setdefault(places.name(of_recipe, folder), set()).update(listing.found)
        measures = CATALOG[action.kind].measures
        steps[name] = LockedStep(
            kind=action.kind,
            version=action.version,
            key=action.key,
            outputs={}
            if measures
            else {
                output: Digest(artifact.sha256, artifact.size_bytes)
                for output, artifact in result.outputs.items()
            },
        )
        if measures:
            measurements[name] = report_of(result)
    return Lock(
        recipe=recipe,
        onnxbuild=__version__,
        resolved={each.name: resolved_recipe(each) for each in recipes},
        host=dict(host),
        python=python,
        packages=packages,
        files=files,
        sources=sources,
        folders={folder: tuple(sorted(found)) for folder, found in folders.items()},
        steps=steps,
        choices=dict(choices),
        measurements=measurements,
    )
