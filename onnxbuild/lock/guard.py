"""Holds a build to its locks: the first thing that differs ends it, by name."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence

from onnxbuild import __version__
from onnxbuild.adapters import machine
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import NO_FILE, NOT_INSTALLED, Action, ActionResult
from onnxbuild.core.errors import BuildError, NotReproducibleError, UndeclaredInputError
from onnxbuild.core.places import real_path
from onnxbuild.core.ports import Fingerprints
from onnxbuild.core.recipe import Recipe
from onnxbuild.lock.bind import BoundLock
from onnxbuild.lock.compare import LockDifference, LockPart, differences
from onnxbuild.lock.make import locked_data, resolved_recipe
from onnxbuild.lock.model import Lock, kind_version
from onnxbuild.lock.places import LockPlaces
from onnxbuild.lock.text import lock_command

_SHOWN = 3  # items in a message


class LockGuard:
    """A guard of the engine's; see `core.ports.Guard`.

    Args:
        locks: Those of all recipe files of the run.
    """

    def __init__(self, locks: Sequence[BoundLock]) -> None:
        self._names: dict[str, list[tuple[BoundLock, str]]] = {}
        for each in locks:
            for step, name in each.names:
                self._names.setdefault(step, []).append((each, name))

    def check_action(self, step: str, action: Action) -> None:
        """Refuse to take or build what the lock does not know.

        Raises:
            NotReproducibleError: The step is not in the lock, or its key or kind is another.
        """
        for locked, name in self._names.get(step, ()):
            expected = locked.lock.steps.get(name)
            if expected is None:
                raise _differs(locked, f"step '{name}' is not in the lock", name, "")
            known = (expected.key, expected.kind, expected.version)
            if (action.key, action.kind, action.version) != known:
                raise _differs(locked, self._why(locked, name, action), name, "")

    def _why(self, locked: BoundLock, name: str, action: Action) -> str:
        lock, kind = locked.lock, kind_version(action.kind, action.version)
        if lock.steps[name].kind_version != kind:
            return f"the step's kind is {kind}; the lock has {lock.steps[name].kind_version}"
        recipe = locked.addresses[name].recipe
        used = LockPlaces(locked.recipes).named(recipe, action.files)
        used |= {n: digest for n, digest in action.toolchain.items() if n != "python"}
        known = {**lock.files, **lock.packages}
        for item, digest in used.items():
            if known.get(item) != digest:
                return f"{item} is {_short(digest)}; the lock has {_short(known.get(item, ''))}"
        if CATALOG[action.kind].driver_bound:
            return "the drivers and libraries of accelerators here are not those that were locked"
        return "the step's options are not those that were locked"

    def check_result(self, step: str, result: ActionResult) -> None:
        """Refuse a result that was made from other things, or is another, than the lock says.

        Raises:
            UndeclaredInputError: It used a file, a source or a package that the lock does not name.
            NotReproducibleError: Anything else differs.
        """
        for locked, name in self._names.get(step, ()):
            self._check_observed(locked, name, result)
            expected = locked.lock.steps[name]
            if not CATALOG[expected.kind].measures:
                _check_names(locked, name, result)
            for output, digest in expected.outputs.items():
                found = result.outputs.get(output)
                if found is None or found.sha256 != digest.sha256:
                    now = "missing" if found is None else _short(found.sha256)
                    raise _differs(
                        locked,
                        f"the output '{output}' is {now}; the lock has {_short(digest.sha256)}, "
                        "and all of its inputs are unchanged",
                        name,
                        f"to find out why: onnxbuild reproduce {shlex.quote(locked.recipe)}",
                    )

    def _check_observed(self, locked: BoundLock, name: str, result: ActionResult) -> None:
        lock, observed, places = locked.lock, result.observed, LockPlaces(locked.recipes)
        kind, recipe = lock.steps[name].kind, locked.addresses[name].recipe
        groups: tuple[tuple[str, Mapping[str, str], Mapping[str, str]], ...] = (
            ("source", places.named(recipe, observed.sources), lock.sources),
            ("file", places.named(recipe, locked_data(kind, observed)), lock.files),
            ("package", observed.distributions, lock.packages),
        )
        for label, used, known in groups:
            for item, digest in used.items():
                if item not in known:
                    verb = "asked for" if digest == NOT_INSTALLED else "used"
                    what = f"the step {verb} {label} {item}, which is not in the lock"
                    raise UndeclaredInputError(what, where=name, fix=_update(locked, item))
                if known[item] != digest:
                    what = (
                        f"{label} {item} is {_short(digest)}; the lock has {_short(known[item])}"
                    )
                    raise _differs(locked, what, name, _update(locked, item))
        for recorded, listing in observed.listings.items():
            folder = places.name(recipe, recorded)
            new = [each for each in listing.found if each not in lock.folders.get(folder, ())]
            if new:
                what = f"{folder}/{new[0]} can be imported there, and is not in the lock"
                raise UndeclaredInputError(what, where=name, fix=_update(locked, folder))


def check_before(locked: BoundLock, fingerprints: Fingerprints, *, is_set: bool = False) -> None:
    """Compare all that can be known before a build with its lock.

    Args:
        locked: The lock, and what it stands for.
        fingerprints: Tell how things are now.
        is_set: Whether `--set` replaces values of the recipe.

    Raises:
        NotReproducibleError: Something differs: the first is named, and how many more there are.
    """
    lock = locked.lock
    asked = {name for _, name in locked.names}
    if not locked.whole:
        kept = {name: step for name, step in lock.steps.items() if name in asked}
        lock = dataclasses.replace(lock, steps=kept)
    now = known_now(lock, locked.recipes, fingerprints)
    steps = {name: step for name, step in lock.steps.items() if name in asked}
    now = dataclasses.replace(now, steps=steps, recipe=locked.recipe_name)
    found = differences(lock, now)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise NotReproducibleError(
            f"{found[0]}{more}", where=locked.path, fix=_update_of(locked, found, is_set=is_set)
        )


def known_now(lock: Lock, recipes: Sequence[Recipe], fingerprints: Fingerprints) -> Lock:
    """A lock with all that goes into a build as it is now; its steps and folders are as locked.

    Args:
        lock: Names the packages, files and sources to look at.
        recipes: What the recipe file holds now.
    """
    folders = LockPlaces(recipes).folders
    real = {path: real_path(path, folders) for path in (*lock.files, *lock.sources)}
    return dataclasses.replace(
        lock,
        onnxbuild=__version__,
        resolved={recipe.name: resolved_recipe(recipe) for recipe in recipes},
        host=machine.host_class(),
        python=fingerprints.python(),
        packages=_present(
            {
                name: fingerprints.distribution(name)
                or (NOT_INSTALLED if digest == NOT_INSTALLED else None)
                for name, digest in lock.packages.items()
            }
        ),
        files={
            path: fingerprints.file(real[path]) or (NO_FILE if digest == NO_FILE else "")
            for path, digest in lock.files.items()
        },
        sources=_present({path: fingerprints.source(real[path]) for path in lock.sources}),
    )


def _present(digests: Mapping[str, str | None]) -> dict[str, str]:
    return {name: digest for name, digest in digests.items() if digest is not None}


def _check_names(locked: BoundLock, name: str, result: ActionResult) -> None:
    known = locked.lock.steps[name].outputs
    for output in result.outputs:
        if output not in known:
            raise _differs(locked, f"the output '{output}' is not in the lock", name, "")


def _differs(locked: BoundLock, what: str, step: str, fix: str) -> BuildError:
    return NotReproducibleError(what, where=step, fix=fix or lock_command(locked.recipe))


def _update(locked: BoundLock, item: str) -> str:
    return f"if it is meant: {lock_command(locked.recipe, item)}"


def _update_of(locked: BoundLock, found: Sequence[LockDifference], *, is_set: bool) -> str:
    items = list(dict.fromkeys(each.item for each in found if not each.follows))
    command = lock_command(locked.recipe, *(items if len(items) <= _SHOWN else ()))
    if is_set and any(each.part is LockPart.RECIPE for each in found):
        # a lock is of the recipe as it is in its file: to renew it changes nothing here
        return f"leave out --set; or write the values into {locked.recipe}, then: {command}"
    return f"if it is meant: {command}"


def _short(digest: str) -> str:
    return digest[:12] if len(digest) == 64 else digest  # noqa: PLR2004 - a sha256
