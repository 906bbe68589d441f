"""Results of a build in the store: by its lock, or for the files as they are; nothing is run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.adapters import machine
from onnxbuild.building.api import Request, graph_of
from onnxbuild.building.choices import choices_in
from onnxbuild.building.wiring import Workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.decision import Hit
from onnxbuild.core.errors import BuildError
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import Fingerprints
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.engine.decide import decide, make_action
from onnxbuild.lock.make import make_lock
from onnxbuild.lock.model import Lock
from onnxbuild.lock.resolved import resolved_recipe
from onnxbuild.lock.text import lock_path, read_lock
from onnxbuild.resolver import resolve


@dataclass(frozen=True, slots=True)
class StoredBuild:
    """Results of a build in the store.

    Attributes:
        graph: Its steps.
        results: Step -> what it gave; only those that are there.
        lock: What it was made of; of a build without one, as far as its results say so.
    """

    graph: Graph
    results: Mapping[str, ActionResult]
    lock: Lock


def lock_of_recipe(
    recipe: Path, recipes: tuple[Recipe, ...], fingerprints: Fingerprints
) -> Lock | None:
    """Return the lock next to a recipe; None where there is none, or it is of another state of recipe or files.

    A lock is renewed by a build that passes, so a commit whose gates fail has that of an earlier one.
    """
    if not lock_path(recipe).is_file():
        return None
    lock = read_lock(recipe)
    same = lock.resolved == {each.name: resolved_recipe(each) for each in recipes}
    return lock if same and not _has_other_files(lock, fingerprints) else None


def _has_other_files(lock: Lock, fingerprints: Fingerprints) -> bool:
    """Return whether a file of the project is not the one that was locked; missing files do not count."""
    pairs = (
        *((digest, fingerprints.source(path)) for path, digest in _own(lock.sources)),
        *((digest, fingerprints.file(path)) for path, digest in _own(lock.files)),
    )
    return any(now is not None and now != digest for digest, now in pairs)


def _own(digests: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Files of the project alone: no folders, no place with a name of its own."""
    for path, digest in digests.items():
        if not path.startswith(("<", "/")) and not path.endswith("/"):
            yield path, digest


def locked(lock: Lock, recipes: tuple[Recipe, ...], workspace: Workspace) -> StoredBuild:
    """Return what the store has of a build that is locked.

    Args:
        lock: Its lock.
        recipes: What the recipe's file holds.
        workspace: The project and the store.
    """
    graph = resolve(recipes, machine.host_facts(), choices=lock.choices)
    return StoredBuild(graph, _locked_results(lock, workspace), lock)


def _locked_results(lock: Lock, workspace: Workspace) -> dict[str, ActionResult]:
    """Return the stored results of a lock's steps, by name."""
    found = {}
    for name, step in lock.steps.items():
        for result in workspace.store.lookup(step.key):
            if all(
                output in result.outputs and result.outputs[output].sha256 == digest.sha256
                for output, digest in step.outputs.items()
            ):
                found[name] = result
                break
    return found


def decided(
    recipe: Path, request: Request, recipes: tuple[Recipe, ...], workspace: Workspace
) -> StoredBuild:
    """Return every result that is there for the files as they are, as `plan` finds them.

    Args:
        recipe: The recipe's file.
        request: The same, as a request.
        recipes: What it holds.
        workspace: The project and the store.
    """
    graph = graph_of(request)
    results: dict[str, ActionResult] = {}
    actions: dict[str, Action] = {}
    host = workspace.host()
    for name, step in graph.steps.items():
        needed = {
            key: ref
            for key, ref in step.inputs.items()
            if ref.step in results or key not in step.optional_inputs
        }
        if any(
            ref.step not in results or ref.output not in results[ref.step].outputs
            for ref in needed.values()
        ):
            continue
        inputs = {key: results[ref.step].outputs[ref.output] for key, ref in needed.items()}
        fingerprints = workspace.fingerprints
        try:
            action = make_action(step, CATALOG[step.kind], inputs, fingerprints, host)
        except BuildError:
            continue  # a declared file or a package is gone: it can't be built
        decision = decide(
            step, action, store=workspace.store, fingerprints=fingerprints,
            history=workspace.history,
        )  # fmt: skip
        if isinstance(decision, Hit):
            results[name], actions[name] = decision.result, action
    lock = make_lock(
        Path(os.path.relpath(recipe, request.project)).as_posix(),
        recipes,
        own=replace(graph, steps={n: s for n, s in graph.steps.items() if n in results}),
        actions=actions,
        results=results,
        host=machine.host_class(),
        python=machine.python_build(),
        choices=choices_in(graph, results),
        report_of=lambda each: _report(each, workspace),
    )
    return StoredBuild(graph, results, lock)


def _report(result: ActionResult, workspace: Workspace) -> Any:
    for artifact in result.outputs.values():
        paths = workspace.store.paths(artifact)
        if REPORT_FILE in paths:
            return json.loads(paths[REPORT_FILE].read_bytes())
    return {}
