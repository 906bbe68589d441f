"""A build as one side: the recipe as it stands, or as a commit has it; from the store, nothing is run."""

import json
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.adapters import git, machine
from onnxbuild.building.api import Request, graph_of, load
from onnxbuild.building.choices import choices_in
from onnxbuild.building.type_again import run_again
from onnxbuild.building.wiring import Workspace, open_workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.comparison.sides import (
    GATE,
    ComparedBundle,
    GateFailure,
    GateReport,
    Side,
    SideKind,
    bundle_in,
)
from onnxbuild.core.action import Action, ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import Hit
from onnxbuild.core.errors import BuildError, UsageError, did_you_mean, listed
from onnxbuild.core.graph import Deliverable, Graph, OutputRef
from onnxbuild.core.ports import Fingerprints
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import MODEL_FILE, REPORT_FILE
from onnxbuild.core.target import CPU, Target
from onnxbuild.document.recipe_names import RecipeName, TypedName
from onnxbuild.engine.decide import decide, make_action
from onnxbuild.lock.make import make_lock, resolved_recipe
from onnxbuild.lock.model import Lock
from onnxbuild.lock.text import lock_path, read_lock
from onnxbuild.project_folder import find_project, is_marked
from onnxbuild.release_format.about import compared_in
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.resolver import resolve
from onnxbuild.typed.typed_names import FoundName, recipes_of


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
        request: The same, as a request.
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


_GATES = ("validation", "evaluation", GATE)
"""Inputs of the step that makes a bundle, or what they begin with: `validation/cpu`, `gate/size`."""
_JUDGED = ("model", "program")
"""Inputs of a gate that hold what it judges."""


def gate_failures(each: Deliverable, found: StoredBuild) -> Iterator[GateFailure]:
    """Yield what the gates of a bundle find fault with."""
    names = {ref.step: name for name, ref in _reports(each, found)}
    for name in each.judged_by:
        step = found.graph.resolve(name)
        result = found.results.get(step)
        for finding in result.findings if result is not None else ():
            local = found.graph.addresses[name].local
            yield GateFailure(local, finding.what, *names.get(step, ("", "")))


def gate_reports(
    each: Deliverable, found: StoredBuild, workspace: Workspace
) -> tuple[GateReport, ...]:
    """Return the reports of the gates that have run, as the bundle would have them."""
    reports = []
    for (noun, of), ref in _reports(each, found):
        artifact = _stored(ref, found, workspace)
        if artifact is None:
            continue
        content = json.loads(workspace.store.paths(artifact)[REPORT_FILE].read_bytes())
        if isinstance(content, dict) and "skipped" not in content:
            reports.append(GateReport(noun, of, content))
    return tuple(reports)


def judged_model(each: Deliverable, found: StoredBuild, workspace: Workspace) -> Artifact | None:
    """Return the model that the gates of a bundle judge; None where the store does not have it."""
    for name in each.judged_by:
        inputs = found.graph.steps[found.graph.resolve(name)].inputs
        for key in _JUDGED:
            artifact = _stored(inputs[key], found, workspace) if key in inputs else None
            if artifact is not None:
                return artifact
    return None


def _reports(each: Deliverable, found: StoredBuild) -> Iterator[tuple[tuple[str, str], OutputRef]]:
    """((`validation`, `cpu`), report) of the gates whose reports enter a bundle."""
    graph = found.graph
    for name, ref in graph.steps[graph.resolve(each.bundle.step)].inputs.items():
        noun, _, of = name.partition("/")
        if noun in _GATES:
            step = graph.resolve(ref.step)
            target = getattr(graph.steps[step].params, "target", None)
            own = target.name if isinstance(target, Target) else CPU
            yield (noun, of or own), OutputRef(step, ref.output)


def _stored(ref: OutputRef, found: StoredBuild, workspace: Workspace) -> Artifact | None:
    result = found.results.get(found.graph.resolve(ref.step))
    artifact = None if result is None else result.outputs.get(ref.output)
    return None if artifact is None or workspace.store.faults(artifact) else artifact


_COMMIT_DIGITS = 12


def recipe_side(name: FoundName, given: str, store: str | None, stack: ExitStack) -> Side:
    """Return the build of a recipe as it stands.

    Args:
        name: Its file, and the only bundle that is meant, if one is named.
        store: `--store`.
        stack: Keeps what is laid for as long as it is looked at.

    Raises:
        RecipeErrors, UsageError: The recipe is faulty, it is not built, or has no such variant.
    """
    request = Request((name.file,), store=store)
    fix = run_again(name.file, store=store)
    title = f"{_title(name)} as built"
    return _side(request, _Asked(given, "build", title, name, fix), stack)


def commit_side(revision: str, name: FoundName, store: str | None, stack: ExitStack) -> Side:
    """Return the build of a recipe as a commit has it: by its lock, else by what the store has of its files.

    Args:
        name: The recipe's file in the working tree, which need not be there any more, and the only bundle
            that is meant, if one is named.
        store: `--store`.
        stack: As for `recipe_side`.

    Raises:
        RecipeErrors, UsageError: There is no such commit, the recipe is not in it, or faulty there, or the
            build is not in the store.
    """
    recipe = name.file
    project = find_project(recipe)
    commit = git.commit_of(project, revision)
    if commit is None:
        raise UsageError(
            f"there is no commit '{revision}'", where=str(project), fix="git log --oneline"
        )
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onnxbuild-diff-")))
    tree = folder / "project"
    tree.mkdir()
    git.export_commit(project, commit, tree)
    if is_marked(project) and not is_marked(tree):
        (tree / ".git").mkdir()  # so that names in keys start from the same root
    inside = os.path.relpath(recipe.absolute(), project)
    there = tree / inside
    if not there.is_file():
        raise UsageError(
            f"the commit {revision} has no {inside}",
            fix="name a recipe that both commits have, or an older release",
        )
    own = Request((recipe,), store=store)
    at_commit = Request((there,), store=str(own.store_root))
    shown = os.path.relpath(own.store_root)
    copy = f"../{recipe.stem}-{commit[:_COMMIT_DIGITS]}"
    fix = (
        f"git worktree add {shlex.quote(copy)} {commit[:_COMMIT_DIGITS]} && "
        f"{run_again(f'{copy}/{inside}', store=shown)}"
    )
    title = f"{_title(name)} at {commit[:_COMMIT_DIGITS]} ({revision})"
    return _side(at_commit, _Asked(revision, "commit", title, name, fix), stack)


def _title(name: FoundName) -> str:
    is_one = RecipeName.parse(name.typed.recipe).member
    recipe = name.typed.recipe if is_one else name.file.stem
    return str(TypedName(recipe, name.local))


@dataclass(frozen=True, slots=True)
class _Asked:
    """Build that is looked for.

    Attributes:
        given: As typed.
        kind: What it is.
        title: What to call it.
        name: The recipe's file in the working tree, and the only bundle that is meant, if one is named.
        fix: What to type to build it.
    """

    given: str
    kind: SideKind
    title: str
    name: FoundName
    fix: str


def _side(request: Request, asked: _Asked, stack: ExitStack) -> Side:
    """Find a build in the store.

    Args:
        request: Where its recipe is, and the store.
        asked: What is looked for.
        stack: As for `recipe_side`.
    """
    (recipe,) = request.recipes
    workspace = stack.enter_context(
        closing(open_workspace(request.project, request.store_root, make=False))
    )
    loaded = load(request)
    lock = None
    if asked.kind == "commit":
        lock = lock_of_recipe(recipe, loaded.recipes, workspace.fingerprints)
    if lock is not None:
        found = locked(lock, loaded.recipes, workspace)
    else:
        found = decided(recipe, request, loaded.recipes, workspace)
    wanted = _wanted(found.graph, asked.name)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onnxbuild-diff-")))
    bundles = [
        replace(_bundle(each, found, workspace, folder, asked.fix), is_page=each.family.is_page)
        for each in wanted
    ]
    missing = [each for each in bundles if not each.sha256 and not each.failed]
    if missing:
        names = ", ".join(f"{each.recipe}:{each.name}" for each in missing)
        raise UsageError(
            f"{names} {'is' if len(missing) == 1 else 'are'} not built as the recipe stands"
            + (f" at {asked.given}" if asked.kind == "commit" else ""),
            fix=asked.fix,
        )
    return Side(
        asked.given, asked.kind, asked.title, tuple(bundles), found.lock, asked.name.local,
        asked.name, is_partial=lock is None and len(found.results) < len(found.graph.steps),
    )  # fmt: skip


def _wanted(graph: Graph, name: FoundName) -> list[Deliverable]:
    recipes = recipes_of(graph, name)
    made = [
        each
        for each in graph.deliverables
        if (each.family.runtime or each.family.is_page) and each.recipe in recipes
    ]
    if not name.local:
        return made
    found = [each for each in made if each.name == name.local]
    if not found:
        known = list(dict.fromkeys(each.name for each in made))
        held = [
            f"{recipe}:{part}"
            for each in graph.deliverables
            if each.recipe in recipes and each.name == name.local
            for recipe, part in each.holds
        ]
        if held:
            raise UsageError(
                f"'{name.local}' holds {listed(held, 'and')}; diff compares one variant with another",
                fix=f"write {held[0]}",
            )
        raise UsageError(
            f"{name.file.name} has no variant '{name.local}'; it has {', '.join(known)}",
            fix=did_you_mean(name.local, known)
            or (f"write {name.typed.recipe}:{known[0]}" if known else f"look at {name.file}"),
        )
    return found


def _bundle(
    each: Deliverable, found: StoredBuild, workspace: Workspace, folder: Path, fix: str
) -> ComparedBundle:
    graph, results, lock = found.graph, found.results, found.lock
    failed = tuple(gate_failures(each, found))
    step = graph.resolve(each.bundle.step)
    measured = {
        target: lock.measurements[graph.resolve(name)]
        for target, name in compared_in(each, graph).items()
        if graph.resolve(name) in lock.measurements
    }
    result = results.get(step)
    if result is not None and each.bundle.output in result.outputs:
        artifact = result.outputs[each.bundle.output]
        if not workspace.store.faults(artifact):
            return replace(
                _laid(each, artifact, measured, workspace, folder), failed=failed, fix=fix
            )
    if failed:
        return replace(_judged(each, found, workspace, folder), failed=failed, fix=fix)
    locked = lock.steps.get(step)
    digest = None if locked is None else locked.outputs.get(each.bundle.output)
    return ComparedBundle(
        each.recipe,
        each.name,
        sha256="" if digest is None else digest.sha256,
        size_bytes=0 if digest is None else digest.size_bytes,
        fix=fix,
    )


def _laid(
    each: Deliverable, artifact: Artifact, measured: Mapping[str, Any],
    workspace: Workspace, folder: Path,
) -> ComparedBundle:  # fmt: skip
    """Lay a bundle as links into the store."""
    target = folder / each.recipe / each.name
    _link(artifact, workspace, target)
    if not (target / MANIFEST).is_file():  # of a kind that a plug-in brings
        return ComparedBundle(
            each.recipe, each.name, folder=target, sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
        )  # fmt: skip
    return bundle_in(
        target, recipe=each.recipe, name=each.name, reports=measured, sha256=artifact.sha256
    )


def _judged(
    each: Deliverable, found: StoredBuild, workspace: Workspace, folder: Path
) -> ComparedBundle:
    """Return what exists of a bundle that a failing gate kept from being made: the gates' reports, their ONNX model."""
    bundle = ComparedBundle(
        each.recipe, each.name, reports=gate_reports(each, found, workspace)
    )  # fmt: skip
    artifact = judged_model(each, found, workspace)
    if artifact is None or MODEL_FILE not in dict(artifact.files):
        return bundle
    target = folder / each.recipe / each.name
    _link(artifact, workspace, target)
    return replace(bundle, model=target / MODEL_FILE, size_bytes=artifact.size_bytes)


def _link(artifact: Artifact, workspace: Workspace, target: Path) -> None:
    for name, blob in workspace.store.paths(artifact).items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(blob)
