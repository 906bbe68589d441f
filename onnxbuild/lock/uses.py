"""Collect what a step used, under the names of a lock: a change of it explains another output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.core.action import Action, ActionResult
from onnxbuild.lock.compare import LockDifference
from onnxbuild.lock.model import Lock
from onnxbuild.lock.places import LockPlaces


def used_items(
    recipe: str, action: Action, result: ActionResult, places: LockPlaces
) -> frozenset[str]:
    """Packages, files, sources and folders that a step used.

    Args:
        recipe: Name of the step's recipe.
        action: What decided it.
        result: What it gave.
        places: Those of the lock.
    """
    observed = result.observed
    paths = (*action.files, *observed.data, *observed.sources, *observed.listings)
    items = {places.name(recipe, path) for path in paths}
    return frozenset(items.union(action.toolchain, observed.distributions))


def unexplained(
    locked: Lock,
    now: Lock,
    found: Sequence[LockDifference],
    uses: Mapping[str, frozenset[str]],
) -> list[LockDifference]:
    """Other outputs of steps whose key is as it was, and all that they used.

    Args:
        locked: As it was.
        now: As it is.
        found: What differs.
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
