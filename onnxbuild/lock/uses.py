"""Collect what a step used, under the names of a lock: a change of it explains another output."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.errors import UsageError
from onnxbuild.lock.compare import LockDifference
from onnxbuild.lock.model import Lock
from onnxbuild.lock.places import LockPlaces
from onnxbuild.lock.text import is_ours, lock_path, parse_lock
from onnxbuild.regular_files import read_user_file


def used_items(
    recipe: str, action: Action, result: ActionResult, places: LockPlaces
) -> frozenset[str]:
    """Packages, files, sources and folders that a step used.

    Args:
        recipe: Name of the step's recipe.
        places: Those of the lock.
    """
    observed = result.observed
    paths = (*action.files, *observed.data, *observed.sources, *observed.listings)
    items = {places.name(recipe, path) for path in paths}
    return frozenset(items.union(action.toolchain, observed.distributions))


def unexplained(
    locked: Lock, now: Lock, found: Sequence[LockDifference], uses: Mapping[str, frozenset[str]]
) -> list[LockDifference]:
    """Other outputs of steps whose key is as it was, and all that they used.

    Args:
        uses: Step -> items that it used.
    """
    facts = {each.item for each in found if not each.follows}
    return [
        each
        for each in found
        if each.follows
        and each.item in locked.steps
        and each.item in now.steps
        and locked.steps[each.item].key == now.steps[each.item].key
        and not (uses[each.item] & facts)
    ]


def refuse_foreign_locks(recipes: Sequence[Path], project: Path) -> None:
    """Make sure that each recipe's lock is its own.

    Args:
        recipes: The recipes that are to be locked.

    Raises:
        UsageError: The file is not one of this program's, or is the lock of another recipe.
    """
    owners: dict[Path, Path] = {}
    for recipe in dict.fromkeys(path.absolute() for path in recipes):
        path = _file_of(recipe)
        other = owners.setdefault(path, recipe)
        if other == recipe:
            other = _owner(path, project) or recipe
        if other != recipe and other.is_file() and not other.samefile(recipe):
            raise UsageError(
                f"{other.name} and {recipe.name} would share one lock",
                where=str(path),
                fix="rename one of the recipes",
            )


def _owner(path: Path, project: Path) -> Path | None:
    """The recipe that a lock is of, if that one's lock would be here."""
    try:
        text = read_user_file(path).decode("utf-8", "replace")
    except OSError:
        return None
    if not is_ours(text):
        raise UsageError(
            "this file was not made by onnxbuild, and would be overwritten",
            where=str(path),
            fix=f"rename the recipe, or move the file away: mv {shlex.quote(str(path))} ...",
        )
    try:
        owner = project / parse_lock(text, str(path), "").recipe
    except UsageError:
        return None  # damaged: it is made anew
    return owner if _file_of(owner) == path else None


def _file_of(recipe: Path) -> Path:
    """The file that a recipe's lock is written to, which is elsewhere if the lock is a link."""
    return Path(os.path.realpath(lock_path(recipe)))
