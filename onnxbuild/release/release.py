"""Make a release: a locked build that passed, in a folder and an archive that others can check."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.adapters import locate
from onnxbuild.adapters.disk import locks
from onnxbuild.adapters.signing_keys import read_private_key
from onnxbuild.adapters.store import pins
from onnxbuild.building.api import BuildResult, Request, build
from onnxbuild.building.wiring import RunOptions, Workspace, open_workspace
from onnxbuild.core.errors import NotReproducibleError
from onnxbuild.core.ports import EventSink, Executor
from onnxbuild.core.recipe import Recipe
from onnxbuild.expansion.limits import SECTION, Budgets, ReleaseOptions
from onnxbuild.lock.places import LockPlaces
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from onnxbuild.recipe.load import load_recipes
from onnxbuild.release.budgets import check_budgets
from onnxbuild.release.previous import Previous, read_previous
from onnxbuild.release.publish import Published, publish
from onnxbuild.release.signing import signatures
from onnxbuild.release.source import look_at_source, used_files
from onnxbuild.release.source_files import Originals, read_originals
from onnxbuild.release_format.about import Title, about, check_version, name_of
from onnxbuild.release_format.bundles import VARIANTS, bundles_of
from onnxbuild.release_format.layout import DIST_FOLDER, release_name
from onnxbuild.release_format.package_records import PACKAGES
from onnxbuild.release_format.tree import (
    Tree,
    all_figures,
    built_files,
    described_files,
    manifests_of,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PLACE_DIGITS = 8


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """Request for a release: what is released, and how.

    Attributes:
        recipe: The recipe's file.
        version: What to call this state of it.
        out: Where releases are written; None for dist/ at the project's root.
        store: The store's folder; None for the project's own.
        allow_dirty: Release what no commit has, and say so in the release.
        key: File of the Ed25519 private key to sign with; None to sign nothing.
        previous: Folder or archive of the release before; None to compare with none.
        force: Replace a release of the same name that differs.
    """

    recipe: Path
    version: str
    out: Path | None = None
    store: str | None = None
    allow_dirty: bool = False
    key: Path | None = None
    previous: Path | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """A release that is written.

    Attributes:
        name: NAME-VERSION.
        published: Where it is.
        variants: Names of the ONNX variants in it.
        others: Names of the PyTorch programs, of the ahead-of-time models, and of the packages.
        signed: It is.
        notices: What whoever released it should know.
    """

    name: str
    published: Published
    variants: tuple[str, ...]
    others: tuple[str, ...]
    signed: bool
    notices: tuple[str, ...]


def make_release(
    wanted: ReleaseRequest,
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
    *,
    ask: Callable[[str], str] | None = None,
    make_executor: Callable[[Workspace], Executor] | None = None,
) -> tuple[BuildResult, Release | None]:
    """Build a recipe as it is locked, and release what came out.

    Args:
        options: How to use the machine.
        events: Sinks for all events.
        make_executor: As for `api.build`.
        ask: Asks a person for the passphrase of the key; None if nobody is there.

    Returns:
        The build, and the release; None if the build failed.

    Raises:
        RecipeErrors, UsageError: What is asked for is faulty; nothing was run.
        NotReproducibleError: The commit or the lock differs from what would be released, or there
            is a release of this name that differs.
        BudgetError: It is worse than the previous release by more than the recipe allows.
        BuildError: It can't be written. Whatever is raised, no release was written.
    """
    check_version(wanted.version)
    request = Request((wanted.recipe,), store=wanted.store, locked=True)
    project = request.project
    refuse_faulty(bring_plugins(project))
    loaded = load_recipes(wanted.recipe, project=project, environment=locate.environment())
    recipes = loaded.recipes
    originals = read_originals(wanted.recipe, loaded.files, project)
    with closing(open_workspace(project, request.store_root)) as workspace:
        folders = {**workspace.fingerprints.places(), **LockPlaces(recipes).folders}
    used = used_files(originals.lock, project, folders)
    source = look_at_source(project, used, originals.paths, allow_dirty=wanted.allow_dirty)
    key = None if wanted.key is None else read_private_key(wanted.key, ask)
    name = name_of(recipes, wanted.recipe.stem)
    previous = None if wanted.previous is None else read_previous(wanted.previous, name)
    result = build(request, options, events, make_executor=make_executor)
    if result.exit_code != 0:
        return result, None
    originals.check_unchanged()
    if source != look_at_source(project, used, originals.paths, allow_dirty=wanted.allow_dirty):
        raise NotReproducibleError(
            "the project was changed while the release was built",
            where=str(project),
            fix="run again",
        )
    title = release_name(name, wanted.version)
    what = Title(name, wanted.version, originals.recipe, originals.lock_file, originals.bases)
    packaged = [each.name for each in recipes if each.section(SECTION, ReleaseOptions).packages]
    described = about(what, recipes, result.graph, source, packaged)
    with closing(open_workspace(project, result.store)) as workspace:
        lock = locks.wait_lock(result.store / "locks" / "store", shared=True)  # gc waits
        try:
            built = built_files(
                described, originals.lock, result.report.results, workspace.store.paths
            )
            notices = _check_budgets(recipes, described, originals, built, previous)
            tree = _complete(described, originals, built, key)
            published = publish(
                wanted.out or project / DIST_FOLDER,
                title,
                tree,
                epoch_s=source.epoch_s,
                force=wanted.force,
                events=events,
            )
        finally:
            lock.release()
    pins.pin(
        result.store,
        _pin_name(title, project),
        [each.key for each in result.report.results.values()],
    )
    return result, Release(
        name=title,
        published=published,
        variants=tuple(described[VARIANTS.key]),
        others=(
            *(name for name in bundles_of(described) if name not in described[VARIANTS.key]),
            *described[PACKAGES],
        ),
        signed=key is not None,
        notices=(*source.notices, *notices),
    )


def _pin_name(title: str, project: Path) -> str:
    """Another one in another project: several may share a store, and a name."""
    place = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()
    return f"{title}@{place[:_PLACE_DIGITS]}"


def _complete(
    described: Mapping[str, Any], originals: Originals, built: Tree, key: Ed25519PrivateKey | None
) -> Tree:
    """Every file of the release."""
    tree = described_files(described, originals.lock, {**built, **originals.files})
    return tree if key is None else {**tree, **signatures(key, tree)}


def _check_budgets(
    recipes: Sequence[Recipe],
    described: Mapping[str, Any],
    originals: Originals,
    built: Tree,
    previous: Previous | None,
) -> tuple[str, ...]:
    """Hold the release to its budgets; returns notices.

    Raises:
        BudgetError: It breaks some.
    """
    by_recipe: dict[str, Budgets] = {}
    for recipe in recipes:
        by_recipe[recipe.name] = recipe.section(SECTION, ReleaseOptions).budgets
    if previous is None:
        if any(each != Budgets() for each in by_recipe.values()):
            return ("budgets are not checked: --previous names the release to compare with",)
        return ()
    return check_budgets(
        {name: by_recipe[each["recipe"]] for name, each in bundles_of(described).items()},
        all_figures(described, originals.lock, manifests_of(described, built)),
        previous,
        originals.lock.host,
    )
