"""Resolve names that a person types for recipes and their parts: `bert`, `bert:int8`, `recipes/bert.yaml:int8/quantize`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.environment import RUNTIME
from onnxbuild.core.errors import BuildError, UsageError, did_you_mean, listed
from onnxbuild.core.graph import FAMILIES, VARIANT, DeliverableFamily
from onnxbuild.core.step import MODEL_FILE, ORT_FILE
from onnxbuild.document.recipe_names import RecipeName, TypedName

if TYPE_CHECKING:
    from onnxbuild.core.graph import Deliverable, Graph

ENDINGS = (".yaml", ".yml")
_FOLDERS = ("recipes", ".")
_SHOWN = 2
"""Examples in a fix."""


@dataclass(frozen=True, slots=True)
class FoundName:
    """A typed name whose recipe was found.

    Attributes:
        typed: As typed.
        file: The recipe's file.
    """

    typed: TypedName
    file: Path

    @property
    def local(self) -> str:
        """The variant or step."""
        return self.typed.local

    def __str__(self) -> str:
        return str(self.typed)


def find_name(text: str, store: str | None = None, part: str = "STEP") -> FoundName:
    """Find the recipe of `RECIPE:STEP` or `RECIPE:VARIANT`.

    Args:
        text: `bert:export`, `recipes/bert.yaml:int8/quantize`.
        store: As for `find_recipe`.
        part: What stands after the colon: STEP or VARIANT.

    Raises:
        UsageError: No recipe or no part is named, or there is no such recipe, or there are several.
    """
    typed = TypedName.parse(text)
    if not typed.recipe or not typed.local:
        raise UsageError(f"'{text}' is not RECIPE:{part}", fix=_example(text, store, part))
    return FoundName(typed, find_recipe(typed.recipe, store, typed.local))


def _example(text: str, store: str | None, part: str) -> str:
    """Return the fix for a name without its part: names of the recipe that it may mean, or of the project's first."""
    from onnxbuild.building.api import Request, graph_of

    files = [path for folder in _FOLDERS for path in sorted(Path(folder).glob("*.y*ml"))]
    try:
        file = find_recipe(text.partition(":")[0] or text, store)
    except UsageError:
        if not files:
            return f"write RECIPE:{part}; a recipe is written by `onnxbuild init`"
        file = files[0]
    try:
        graph = graph_of(Request((file,), store=store))
    except BuildError:
        return f"write {file}:{part}"
    families = (VARIANT,)
    made = [f"{each.recipe}:{each.name}" for each in graph.deliverables if each.family in families]
    names = list(graph.steps) if part == "STEP" else made
    alike = [each for each in names if each.partition(":")[2] == text.rpartition(":")[2]] or names
    return f"write {listed(alike[:_SHOWN], 'or')}" if alike else f"write {file}:{part}"


def find_recipe(text: str, store: str | None = None, part: str = "") -> Path:
    """The file of a recipe that is given by its path, its name (as `run` prints it) or its file's.

    Files are looked for in recipes/, here, and among those that were built last.

    Args:
        text: `recipes/bert.yaml`, `bert`; of a file with several, `bert@size=8` or `whisper@encoder`, too.
        store: `--store`, whose runs know which files were built.
        part: The step or variant that was named with it, for what to type instead.

    Raises:
        UsageError: There is none, or several recipes have the name.
    """
    from onnxbuild.adapters.locate import environment
    from onnxbuild.plugins.bring import bring_plugins
    from onnxbuild.project_folder import find_project
    from onnxbuild.recipe.load import names_in

    if Path(text).is_file():
        return Path(text)
    bring_plugins(find_project(Path("recipe.yaml")))
    base = RecipeName.parse(text).base
    in_folders = [path for folder in _FOLDERS for path in sorted(Path(folder).glob("*.y*ml"))]
    places = [Path(folder, f"{base}{end}") for folder in _FOLDERS for end in ENDINGS]
    alike = [path for path in places if path.is_file()]
    for path in alike:
        if base in names_in(path, environment()):
            return path
    built = [path for path in _built(base, store) if path not in in_folders]
    found = [path for path in (*in_folders, *built) if base in names_in(path, environment())]
    if len(found) > 1:
        files = ", ".join(map(str, found))
        raise UsageError(
            f"several files hold a recipe named '{base}': {files}",
            fix=f"write {found[0]}:{part}" if part else f"write {found[0]}",
        )
    if found or alike or built:
        return (*found, *alike, *built)[0]  # the last were built so named, with `--set name=...`
    known = sorted({path.stem for path in in_folders if path.parent.name})
    if re.fullmatch(r"[A-Za-z_][\w.]*=.*", text):
        raise UsageError(f"'{text}' is no recipe", fix=f"write --set {shlex.quote(text)}")
    raise UsageError(
        f"there is no recipe '{text}'" + (f"; recipes/ has {', '.join(known)}" if known else ""),
        fix=did_you_mean(base, known) or "give the path of a recipe file",
    )


def _built(name: str, store: str | None) -> list[Path]:
    """Files that were built here and held a recipe of this name, the newest first."""
    from onnxbuild.adapters.locate import store_root
    from onnxbuild.adapters.store.runs import files_built
    from onnxbuild.project_folder import find_project

    project = find_project(Path("recipe.yaml"))
    files = (project / file for file in files_built(store_root(project, store), name))
    return [_shown(file) for file in files if file.is_file()]


def _shown(path: Path) -> Path:
    """A path as a person here would type it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def find_deliverable(
    graph: Graph, name: FoundName, shown: Collection[DeliverableFamily] = ()
) -> Deliverable:
    """The folder below out/ that a name means.

    Args:
        name: `RECIPE:VARIANT`.
        shown: What an error lists; empty for all.

    Raises:
        UsageError: There is none, or several recipes of a matrix have it.
    """
    recipes = recipes_of(graph, name)
    made = [each for each in graph.deliverables if not each.family.is_page]
    found = [each for each in made if each.name == name.local and each.recipe in recipes]
    if not found:
        of_kind = [each for each in made if not shown or each.family in shown]
        known = list(dict.fromkeys(each.name for each in of_kind if each.recipe in recipes))
        raise UsageError(
            f"'{name.typed.recipe}' has no variant '{name.local}'; it has {', '.join(known)}",
            fix=did_you_mean(name.local, known)
            or (f"write {name.typed.recipe}:{known[0]}" if known else f"look at {name.file}"),
        )
    if len(found) > 1:
        names = [f"{each.recipe}:{each.name}" for each in found]
        raise UsageError(
            f"'{name.local}' is a variant of several recipes: {', '.join(names)}",
            fix=f"write {names[0]}",
        )
    return found[0]


def find_onnx(
    graph: Graph, name: FoundName, verb: str, families: Collection[DeliverableFamily] = (VARIANT,)
) -> Deliverable:
    """The ONNX variant that a name means.

    Args:
        name: `RECIPE:VARIANT`.
        verb: What was typed, and what is typed again.
        families: What the verb works on.

    Raises:
        UsageError: As `find_deliverable`, or it is something else than an ONNX model.
    """
    found = find_deliverable(graph, name, families)
    if found.family in families:
        return found
    if found.holds:
        held = [f"{recipe}:{part}" for recipe, part in found.holds]
        raise UsageError(
            f"'{found.name}' holds {listed(held, 'and')}; {verb} works on one ONNX variant",
            fix=f"onnxbuild {verb} {held[0]}",
        )
    variants = [
        each.name
        for each in graph.deliverables
        if each.recipe == found.recipe and each.family.is_portable
    ]
    source = f"is made of '{found.variant}' and " if found.variant else ""
    other = found.variant or next(iter(variants), "")
    raise UsageError(
        f"'{found.name}' {source}is not an ONNX variant; {verb} works on ONNX variants",
        fix=f"onnxbuild {verb} {name.typed.recipe}:{other}"
        if other
        else f"add `onnx` to `formats` in {name.file}",
    )


def find_step(graph: Graph, name: FoundName) -> str:
    """The full name of the step that a name means.

    Args:
        name: `RECIPE:STEP`.

    Raises:
        UsageError: There is none, or several recipes of a matrix have it.
    """
    recipes = recipes_of(graph, name)
    own = {full: at for full, at in graph.addresses.items() if at.recipe in recipes}
    found = sorted(full for full, at in own.items() if at.local == name.local)
    if len(found) == 1:
        return graph.resolve(found[0])
    if found:
        raise UsageError(
            f"'{name.local}' is a step of several recipes: {', '.join(found)}",
            fix=f"write {found[0]}",
        )
    known = sorted({at.local for at in own.values()})
    known = [each for each in known if each.startswith(f"{name.local}/")] or known
    raise UsageError(
        f"there is no step '{name.local}'; there are {', '.join(known)}",
        fix=did_you_mean(name.local, known) or f"write {name.typed.recipe}:{known[0]}",
    )


def recipes_of(graph: Graph, name: FoundName) -> list[str]:
    """Return the names of a file's recipes that a name means; all where it was named with `--set name=...`.

    Args:
        name: `RECIPE` or `RECIPE:LOCAL`.

    Raises:
        UsageError: It names a component or a combination that the file has not.
    """
    files = dict.fromkeys((at.recipe for at in graph.addresses.values()), str(name.file))
    found = name.typed.recipes_of(files)
    if not found and RecipeName.parse(name.typed.recipe).member:
        known = sorted(files)
        raise UsageError(
            f"{name.file} makes no '{name.typed.recipe}'; it makes {', '.join(known)}",
            fix=did_you_mean(name.typed.recipe, known) or f"write {known[0]}",
        )
    return found or list(files)


_ONNX = [each for each in FAMILIES.values() if each.runtime == RUNTIME]
"""Families of bundles that ONNX Runtime opens."""


def find_model(name: str, store: str | None, verb: str) -> Path:
    """Return the file of a model: the one that is named, or that of a built variant.

    Args:
        name: `model.onnx`, `bert:int8`, `recipes/bert.yaml:int8`.
        store: `--store`.
        verb: What is typed again, with another name.

    Raises:
        UsageError: There is none, it is no ONNX model, or several are meant.
    """
    return Path(name) if Path(name).is_file() else _variant_model(name, store, verb)


def _variant_model(name: str, store: str | None, verb: str) -> Path:
    if name.endswith(".onnx"):
        raise UsageError(f"there is no model '{name}'", fix="give the path of an .onnx file")
    from onnxbuild.building.api import Request, graph_of
    from onnxbuild.building.type_again import run_again

    asked = find_name(name, store, "VARIANT")
    request = Request((asked.file,), store=store)
    found = find_onnx(graph_of(request), asked, verb, _ONNX)
    path = request.store_root / "out" / found.recipe / found.name / MODEL_FILE
    if path.with_name(ORT_FILE).is_file():
        raise UsageError(
            f"{path.with_name(ORT_FILE)} is in ORT format; {verb} shows ONNX models",
            fix="see manifest.json and required_operators.config next to it",
        )
    if not path.is_file():
        raise UsageError(
            f"{name} is not built: there is no {path}",
            fix=run_again(asked.file, store=store, only=f"{found.recipe}:{found.name}"),
        )
    return path
