"""A finished build -> its lock: the observations that it holds, and what the recipe is once resolved."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from onnxbuild import __version__
from onnxbuild.adapters.toolchain.fingerprints import SITE_FOLDERS
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import Action, ActionResult, Observed
from onnxbuild.core.digest import Digest
from onnxbuild.core.graph import Graph
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import FRONTEND, Entrypoint, Recipe
from onnxbuild.lock.model import Lock, LockedStep
from onnxbuild.lock.places import LockPlaces


def locked_data(kind: str, observed: Observed) -> Mapping[str, str]:
    """Return the files and listings that a lock holds: path -> digest.

    Listings of all folders of packages are left out: no two machines have the same, and the packages that
    were used are in the lock. Listings by a step that measures are left out, too: its output is never
    compared, and the compilers that it starts list every folder that they could import from.
    """
    measures = CATALOG[kind].measures
    return {
        path: digest
        for path, digest in observed.data.items()
        if path != f"{SITE_FOLDERS}/" and not (measures and path.endswith("/"))
    }


def resolved_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return all that the recipe asks for, without the places in its file.

    The values of environment variables are given by digest: a file that is committed is no place
    for a token.
    """
    formats = {
        each.name: {"options": to_json(each.options), "tolerances": to_json(each.tolerances)}
        for each in recipe.formats
    }
    connections = {each.input: f"{each.component}.{each.output}" for each in recipe.connections}
    return {
        "name": recipe.name,
        "model": _entrypoint(recipe.model),
        "inputs": to_json(recipe.inputs),
        "outputs": list(recipe.outputs),
        "axes": to_json(recipe.axes),
        "opset": recipe.opset,
        "variants": {
            variant.name: {
                "mode": variant.mode,
                "options": to_json(variant.options),
                "sections": to_json(variant.sections),
            }
            for variant in recipe.variants
        },
        "targets": to_json(recipe.targets),
        "gates": to_json(recipe.gates),
        "sections": to_json(recipe.sections),
        "entrypoints": {name: _entrypoint(each) for name, each in recipe.entrypoints.items()},
        **({"formats": formats} if formats else {}),
        **({} if recipe.frontend == FRONTEND else {"frontend": recipe.frontend}),
        **({"connections": connections} if connections else {}),
        **({} if recipe.environment is None else {"environment": to_json(recipe.environment)}),
    }


def _entrypoint(entrypoint: Entrypoint) -> dict[str, Any]:
    resolved: dict[str, Any] = to_json(entrypoint)
    resolved["env"] = {
        name: f"sha256 {hashlib.sha256(value.encode('utf-8', 'surrogateescape')).hexdigest()}"
        for name, value in entrypoint.env.items()
    }
    return resolved


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
        own: The graph of these recipes alone.
        actions: Name of a step of `own` -> what decided it.
        results: Name of a step of `own` -> what it gave.
        host: What of the machine can change numbers.
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
