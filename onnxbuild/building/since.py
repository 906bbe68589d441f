"""Recipes that the changes since a commit can change: what decides each of them, against what git reports."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from onnxbuild.adapters.git import TreeChanges, changes_since
from onnxbuild.adapters.sandbox.fence import SOURCES
from onnxbuild.adapters.toolchain.fingerprints import IMPORT_PATH, SITE_FOLDERS
from onnxbuild.building.api import opened_to_look
from onnxbuild.building.recipe_cache import program_files
from onnxbuild.building.request import Loaded, Request, graph_of, load
from onnxbuild.building.wiring import Workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import Observed
from onnxbuild.core.graph import Graph
from onnxbuild.core.places import real_path
from onnxbuild.core.step import StepKind
from onnxbuild.core.target import environment_of
from onnxbuild.engine.plan import Planned
from onnxbuild.lock.text import lock_path

_OF_ALL = (
    "pyproject.toml", "setup.py", "setup.cfg", "Pipfile", ".python-version", ".tool-versions",
    "*requirements*.txt", "*requirements*.in", "*constraints*.txt", "environment*.y*ml",
    "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pixi.toml", "pixi.lock", "*Dockerfile*",
)  # fmt: skip
"""Names of files that say what is installed where recipes are built: its digests are in every key."""
_ATTRIBUTES = ".gitattributes"
_METADATA = (".egg-info", ".dist-info")


@dataclass(frozen=True, slots=True)
class CauseOfChange:
    """A change that can change a recipe.

    Attributes:
        path: The file or folder, absolute.
        change: `added`, `changed` or `deleted`.
        reason: Why it matters, as a clause: "bert:export reads it".
    """

    path: Path
    change: str
    reason: str


@dataclass(frozen=True, slots=True)
class RecipeChange:
    """A recipe, and what can have changed it.

    Attributes:
        recipe: Its name.
        file: Its file, as given.
        causes: Empty if nothing can.
    """

    recipe: str
    file: Path
    causes: tuple[CauseOfChange, ...]


def changed_since(
    request: Request, revision: str, catalog: Mapping[str, StepKind] = CATALOG
) -> tuple[str, tuple[RecipeChange, ...]]:
    """Return a revision's commit, and each recipe with what differs from it and can change the recipe.

    No recipe that the changes affect is left out. What a step reads is known from its result in the store; where
    it has none, each change counts that a step could see.

    Args:
        request: The recipes.
        revision: `origin/main`, `HEAD~1`.
        catalog: Step kinds by name.

    Raises:
        UsageError: There is no such commit, or the project is in no repository of git.
        RecipeErrors: A recipe is faulty.
    """
    changes = changes_since(request.project, revision)
    with opened_to_look(request) as workspace:
        loaded = load(request, workspace.recipes())
        graph = graph_of(request, loaded)
        steps = _Steps(workspace, graph, catalog)
        for_all = _causes_of_all(changes)
        found = []
        for path, recipes in loaded.by_file.items():
            for recipe in recipes:
                inputs = _inputs_of(recipe.name, path, loaded, steps)
                causes = {each.path: each for each in (*inputs.causes(changes), *for_all)}
                found.append(RecipeChange(recipe.name, path, tuple(causes.values())))
    return changes.commit, tuple(found)


def _causes_of_all(changes: TreeChanges) -> list[CauseOfChange]:
    """Return the changes that can change every recipe."""
    program = {Path(path).resolve() for path in program_files()}
    found = []
    for path, change in changes.files.items():
        reason = ""
        if path.resolve() in program:
            reason = "it is code of onnxbuild or of a plug-in"
        elif any(fnmatch(path.name, pattern) for pattern in _OF_ALL):
            reason = "it can decide which packages are installed"
        elif path.name == _ATTRIBUTES:
            reason = "it can change how git writes files"
        if reason:
            found.append(CauseOfChange(path, change, reason))
    return found


@dataclass(slots=True)
class _Inputs:
    """Things that decide a recipe; paths as `_named` gives them.

    Attributes:
        files: File -> who reads it.
        entries: Folder -> (who lists it, first parts of the names that matter; None for all).
        existence: Path -> who looks whether it is there.
        modules: Name of a module that is looked for on the import path -> who does.
        unknown: A step of which it is not known what it reads; empty if there is none.
    """

    files: dict[Path, str] = field(default_factory=dict)
    entries: dict[Path, list[tuple[str, frozenset[str] | None]]] = field(default_factory=dict)
    existence: dict[Path, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    unknown: str = ""

    def add_file(self, path: Path, reader: str) -> None:
        """Add a file, with the file that it leads to if it is a link."""
        for each in _named(path):
            self.files.setdefault(each, reader)

    def add_folder(self, path: Path, reader: str, names: frozenset[str] | None = None) -> None:
        """Add a folder that is listed."""
        for each in _named(path):
            self.entries.setdefault(each, []).append((reader, names))

    def causes(self, changes: TreeChanges) -> Iterator[CauseOfChange]:
        """Yield the changes that matter."""
        for path, change in changes.files.items():
            reader = self.files.get(path) or self._reader_below(path)
            if reader:
                yield CauseOfChange(path, change, f"{reader} reads it")
            elif self.unknown and (path in changes.entries or _is_open(path)):
                yield CauseOfChange(path, change, f"it is not known what {self.unknown} reads")
        for path in sorted(changes.entries):
            change = changes.files.get(path) or ("added" if path.is_dir() else "deleted")
            stem = path.name.partition(".")[0]
            for reader, names in self.entries.get(path.parent, ()):
                if names is None or stem in names:
                    yield CauseOfChange(path, change, f"{reader} lists its folder")
            if path in self.existence:
                yield CauseOfChange(
                    path, change, f"{self.existence[path]} looks whether it is there"
                )
            if stem in self.modules:
                yield CauseOfChange(
                    path, change, f"{self.modules[stem]} looks for a module of its name"
                )

    def _reader_below(self, path: Path) -> str:
        """Return who reads a file below a changed path, where that is a submodule or a link to a folder."""
        if not path.is_dir():
            return ""
        known = {**{each: found[0][0] for each, found in self.entries.items()}, **self.files}
        return next((who for each, who in known.items() if each.is_relative_to(path)), "")


def _is_open(path: Path) -> bool:
    """Return whether a step may read a file that no recipe declares."""
    return path.name.endswith(SOURCES) or path.parent.suffix in _METADATA


def _named(path: Path) -> set[Path]:
    """Return a path as git names it, where it leads to, and the links on the way."""
    links = [each for each in path.parents if each.is_symlink()]
    return {path.resolve(), *(each.parent.resolve() / each.name for each in (path, *links))}


class _Steps:
    """The steps of a graph, as they are planned."""

    def __init__(
        self, workspace: Workspace, graph: Graph, catalog: Mapping[str, StepKind]
    ) -> None:
        self.workspace, self.graph, self.catalog = workspace, graph, catalog
        self.planned = {each.step: each for each in workspace.plan(graph, catalog)}

    def absolute(self, path: str, outside: Mapping[str, str]) -> Path:
        """Return where a path is that an action or a record has."""
        return Path(self.workspace.fingerprints.absolute(real_path(path, outside)))


def _inputs_of(recipe: str, file: Path, loaded: Loaded, steps: _Steps) -> _Inputs:
    found = _Inputs()
    for path in (*loaded.decided_by[file], lock_path(file).absolute()):
        found.add_file(path, "the recipe")
        if path.is_dir():
            found.add_folder(path, "the recipe")
    names = steps.graph.names_by_recipe.get(recipe, ())
    for name in dict.fromkeys(map(steps.graph.resolve, names)):
        _add_declared(found, name, steps)
        kind = steps.catalog[steps.graph.steps[name].kind]
        if kind.user_code:
            _add_observed(found, steps.planned[name], steps)
    return found


def _add_declared(found: _Inputs, name: str, steps: _Steps) -> None:
    step = steps.graph.steps[name]
    for entrypoint in steps.catalog[step.kind].entrypoints(step.params):
        for path in entrypoint.files:
            found.add_file(steps.absolute(path, entrypoint.outside), name)
    environment = environment_of(step.params)
    if environment is not None and not environment.python:
        listed = steps.workspace.fingerprints.environments.requirements(environment)
        found.add_file(Path(listed), name)


def _add_observed(found: _Inputs, planned: Planned, steps: _Steps) -> None:
    if not (planned.hit or planned.result or planned.left_out):
        found.unknown = found.unknown or planned.step
    if (action := planned.action) is not None:
        hit = planned.result
        for result in steps.workspace.store.lookup(action.key) if hit is None else (hit,):
            _add_seen(found, planned.step, result.observed, action.outside, steps)


def _add_seen(
    found: _Inputs, name: str, seen: Observed, outside: Mapping[str, str], steps: _Steps
) -> None:
    for path in (*seen.sources, *seen.links):
        found.add_file(steps.absolute(path, outside), name)
    for path in seen.data:
        absolute = steps.absolute(path, outside)
        if path.endswith("/"):
            found.add_folder(absolute, name)
        else:
            found.add_file(absolute, name)
    for path in seen.existence:
        for each in _named(steps.absolute(path, outside)):
            found.existence.setdefault(each, name)
    for folder, listing in seen.listings.items():
        names = frozenset(part for each in listing.names for part in each.split("."))
        if folder in (SITE_FOLDERS, IMPORT_PATH):
            found.modules |= dict.fromkeys(names, name)
        else:
            found.add_folder(
                steps.absolute(folder, outside), name, names | sys.stdlib_module_names
            )
