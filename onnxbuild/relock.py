"""Make, renew and check the locks of recipes: `lock`."""

import errno
import json
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.atomic_files import write_atomically
from onnxbuild.building.api import BuildResult, Request, deliver
from onnxbuild.building.choices import build_chosen, choices_of
from onnxbuild.building.wiring import RunOptions, Workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import ActionResult
from onnxbuild.core.errors import NotReproducibleError, StoreError, UsageError, did_you_mean
from onnxbuild.core.ports import EventSink, Executor
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import REPORT_FILE, StepKind
from onnxbuild.lock.bind import names_in_lock
from onnxbuild.lock.compare import MEASUREMENTS, LockDifference, differences
from onnxbuild.lock.make import make_lock
from onnxbuild.lock.model import Lock
from onnxbuild.lock.places import LockPlaces
from onnxbuild.lock.text import lock_command, lock_path, lock_text, read_lock
from onnxbuild.lock.uses import refuse_foreign_locks, unexplained, used_items
from onnxbuild.resolver import resolve

_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True, slots=True)
class Relocked:
    """One recipe file's lock, compared with the build at hand.

    Attributes:
        recipe: The recipe's file.
        path: The lock's file.
        lock: As it would be written now.
        new: There was no lock.
        differences: What differs from the lock that was there.
        old: The lock that was there.
        written: The file was written.
    """

    recipe: Path
    path: Path
    lock: Lock
    new: bool
    differences: tuple[LockDifference, ...]
    old: Lock | None = None
    written: bool = False


def relock(
    request: Request,
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
    *,
    update: Collection[str] = (),
    write: bool = True,
    catalog: Mapping[str, StepKind] = CATALOG,
    make_executor: Callable[[Workspace], Executor] | None = None,
) -> tuple[BuildResult, tuple[Relocked, ...]]:
    """Build recipes and compare what was used and made with their locks.

    Args:
        request: Recipes, all of them: a lock speaks of a whole recipe.
        options: How to use the machine.
        events: Sinks for all events.
        update: Items that may differ: a package, a path, `recipe`, `host`, `python`, `onnxbuild`,
            a step, `measurements`; whatever else goes into the build must be as it was locked.
            Empty allows everything.
        write: Write the locks, and lay the folders below out/; else only compare.
        catalog: As for `api.build`.
        make_executor: As for `api.build`.

    Returns:
        The build, and a lock for each recipe file; none if the build failed.

    Raises:
        UsageError: An item is neither in the lock nor new; a lock's file is another program's, or
            another recipe's.
        NotReproducibleError: Something differs that is not among `update`; nothing is written.
    """
    if write:
        refuse_foreign_locks(request.recipes, request.project)
    if (update or not write) and "choices" not in update:
        request = replace(request, choices=_choices_before(request))
    request, result = build_chosen(
        request, options, events, catalog=catalog, make_executor=make_executor, lay=False
    )
    if result.exit_code != 0:
        return result, ()
    relocked = []
    for path, recipes in result.loaded.by_file.items():
        lock = lock_of(result, path, recipes, request.project)
        old = _old(path, strict=bool(update) or not write)
        relocked.append(_compare(path, lock, old, update))
    if update:
        _refuse_unknown(relocked, update)
        for each in relocked:
            recipes = result.loaded.by_file[each.recipe]
            _refuse_unasked(each, _unexplained(result, each, recipes, update), update)
    if write:
        texts = [lock_text(each.lock) for each in relocked]
        relocked = [_write(each, text) for each, text in zip(relocked, texts, strict=True)]
        deliver(request, result, events)  # what is delivered is what is locked
    return result, tuple(relocked)


def _choices_before(request: Request) -> dict[str, str] | None:
    """Return the choices in the existing locks: another measurement is no difference. None if there are none."""
    choices: dict[str, str] = {}
    for path in request.recipes:
        choices |= read_lock(path).choices
    return choices or None


def lock_of(result: BuildResult, path: Path, recipes: Sequence[Recipe], project: Path) -> Lock:
    """The lock of one recipe file of a build that passed."""
    choices = choices_of(result, {each.name for each in recipes})
    own = resolve(recipes, machine.host_facts(), choices=choices)
    report = result.report
    names = names_in_lock(own, result.graph)
    return make_lock(
        Path(os.path.relpath(path, project)).as_posix(),
        recipes,
        own=own,
        actions={name: report.actions[step] for step, name in names},
        results={name: report.results[step] for step, name in names},
        host=machine.host_class(),
        python=machine.python_build(),
        choices=choices,
        report_of=lambda each: _read_report(result.store, each),
    )


def _read_report(store: Path, result: ActionResult) -> Any:
    (artifact,) = result.outputs.values()
    digest = dict(artifact.files)[REPORT_FILE]
    return json.loads((store / "cas" / "sha256" / digest.sha256[:2] / digest.sha256).read_bytes())


def _old(recipe: Path, *, strict: bool) -> Lock | None:
    """The lock that is there; None if there is none, or (not strict) none that can be read.

    Raises:
        UsageError: It is damaged, or missing, and must not be.
    """
    try:
        return read_lock(recipe)
    except UsageError:
        if strict:
            raise
        return None


def _compare(recipe: Path, lock: Lock, old: Lock | None, update: Collection[str]) -> Relocked:
    path = lock_path(recipe)
    if old is None:
        return Relocked(recipe, path, lock, new=True, differences=())
    if MEASUREMENTS not in update:
        kept = {
            name: old.measurements[name]
            for name, step in lock.steps.items()
            if name in old.measurements and name in old.steps and old.steps[name].key == step.key
        }  # the same models on the same machine: a new measurement would only be another one
        lock = replace(lock, measurements={**lock.measurements, **kept})
    return Relocked(recipe, path, lock, new=False, differences=differences(old, lock), old=old)


def _unexplained(
    result: BuildResult, compared: Relocked, recipes: Sequence[Recipe], update: Collection[str]
) -> list[LockDifference]:
    """Outputs that differ though nothing that their steps used does, and are not asked for."""
    own = resolve(recipes, machine.host_facts(), choices=compared.lock.choices)
    places, report = LockPlaces(recipes), result.report
    uses = {
        name: used_items(
            own.addresses[name].recipe, report.actions[step], report.results[step], places
        )
        for step, name in names_in_lock(own, result.graph)
    }
    if compared.old is None:
        return []
    found = unexplained(compared.old, compared.lock, compared.differences, uses)
    return [each for each in found if each.item not in update]


def _refuse_unknown(relocked: Sequence[Relocked], update: Collection[str]) -> None:
    """Refuse an item that no lock has; of several recipes, one may use a package or a file alone.

    Raises:
        UsageError: There is one.
    """
    locks = [lock for each in relocked for lock in (each.lock, each.old) if lock is not None]
    known = set[str]().union(*map(_items, locks))
    path, *others = (str(each.path) for each in relocked)
    for item in update:
        if item not in known:
            choices = f"`recipe`, `host`, `python`, `onnxbuild`, or a name that stands in {path}"
            raise UsageError(
                f"{'none of the locks has an' if others else 'the lock has no'} item '{item}'",
                where=", ".join((path, *others)),
                fix=did_you_mean(item, known) or f"name {choices}",
            )


def _refuse_unasked(
    compared: Relocked, unexplained: Sequence[LockDifference], update: Collection[str]
) -> None:
    found, path = compared.differences, compared.path
    unasked = [each for each in found if not each.follows and each.item not in update]
    unasked += unexplained
    if not unasked and not any(not each.follows for each in found):
        unasked = [each for each in found if each.item not in update][:1]  # nothing explains it
    if unasked:
        command = lock_command(compared.recipe, *dict.fromkeys(each.item for each in unasked))
        more = f" (and {len(unasked) - 1} more)" if len(unasked) > 1 else ""
        why = ""
        if unasked[0] in unexplained:
            why = f"; to find out why: onnxbuild reproduce {shlex.quote(str(compared.recipe))}"
            more += ", though its step's inputs are unchanged"
        raise NotReproducibleError(
            f"{unasked[0]}{more}: not among what may change",
            where=str(path),
            fix=f"if it is meant: {command}{why}",
        )


def _items(lock: Lock) -> set[str]:
    fixed = {"recipe", "choices", "host", "python", "onnxbuild", MEASUREMENTS}
    return fixed.union(lock.packages, lock.files, lock.sources, lock.folders, lock.steps)


def _write(each: Relocked, text: str) -> Relocked:
    """Write a lock, unless it is so already; a link stays, and the file that it leads to is written.

    Raises:
        StoreError: It can't be written.
    """
    content, path = text.encode(), Path(os.path.realpath(each.path))
    try:
        if path.read_bytes() == content:
            return each
    except OSError:
        pass  # it is not there, or no reason to keep it
    try:
        write_atomically(path, content, path.parent)
    except StoreError as error:
        if getattr(error.__cause__, "errno", None) not in _REFUSED:
            raise
        raise StoreError(error.what, fix="make its folder writable") from error.__cause__
    return replace(each, written=True)
