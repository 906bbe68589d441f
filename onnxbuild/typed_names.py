"""`RECIPE:STEP` and `RECIPE:VARIANT` on the command line: which file, and what of its graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from onnxbuild.core.graph import Deliverable, Graph


def split_name(text: str, store: str | None = None) -> tuple[Path, str]:
    """The recipe file and the step that `text` names.

    Args:
        text: `bert:export`, `recipes/bert.yaml:int8/quantize`.
        store: As for `find_recipe`.

    Raises:
        UsageError: No step is named, or there is no such recipe, or there are several.
    """
    recipe, colon, step = text.rpartition(":")
    if not colon or not recipe or not step:
        raise UsageError(
            f"'{text}' is not RECIPE:STEP", fix="write it like bert:export or bert:int8/quantize"
        )
    return find_recipe(recipe, store, step), step


def split_printed(text: str) -> tuple[str, str]:
    """(recipe, step) of `text` typed as `run` prints it: no recipe's name has a colon."""
    recipe, _, step = text.partition(":")
    return recipe, step


def find_recipe(text: str, store: str | None = None, step: str = "STEP") -> Path:
    """The file of a recipe that is given by its path, its name (as `run` prints it) or its file's.

    Files are looked for in recipes/, here, and among those that were built last.

    Args:
        text: `recipes/bert.yaml`, `bert`; of a matrix, `bert@size=8`, too.
        store: `--store`, whose runs know which files were built.
        step: What was named with it, for what to type instead.

    Raises:
        UsageError: There is none, or several recipes have the name.
    """
    from onnxbuild.adapters.locate import environment
    from onnxbuild.adapters.plugins.bring import bring_plugins
    from onnxbuild.recipe.names import names_in
    from onnxbuild.recipe.project import find_project

    if Path(text).is_file():
        return Path(text)
    bring_plugins(find_project(Path("recipe.yaml")))
    base = text.partition("@")[0]
    in_folders = [
        path for folder in ("recipes", ".") for path in sorted(Path(folder).glob("*.y*ml"))
    ]
    endings = [(folder, end) for folder in ("recipes", ".") for end in (".yaml", ".yml")]
    alike = [path for folder, end in endings if (path := Path(folder, f"{base}{end}")).is_file()]
    for path in alike:
        if base in names_in(path, environment()):
            return path
    built = [path for path in _built(base, store) if path not in in_folders]
    found = [path for path in (*in_folders, *built) if base in names_in(path, environment())]
    if len(found) > 1:
        files = ", ".join(map(str, found))
        raise UsageError(
            f"several files hold a recipe named '{base}': {files}",
            fix=f"write {found[0]}:{step}",
        )
    if found or alike or built:
        return (*found, *alike, *built)[0]  # the last were built so named, with `--set name=...`
    known = sorted({path.stem for path in in_folders if path.parent.name})
    raise UsageError(
        f"there is no recipe '{text}'" + (f"; recipes/ has {', '.join(known)}" if known else ""),
        fix=did_you_mean(base, known) or "give the path of a recipe file",
    )


def _built(name: str, store: str | None) -> list[Path]:
    """Files that were built here and held a recipe of this name, the newest first."""
    from onnxbuild.adapters.locate import store_root
    from onnxbuild.adapters.store.run_notes import files_built
    from onnxbuild.recipe.project import find_project

    project = find_project(Path("recipe.yaml"))
    files = (project / file for file in files_built(store_root(project, store), name))
    return [_shown(file) for file in files if file.is_file()]


def _shown(path: Path) -> Path:
    """A path as a person here would type it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def find_deliverable(graph: Graph, text: str) -> Deliverable:
    """The folder below out/ that `text` means.

    Args:
        graph: The recipe's.
        text: `RECIPE:VARIANT`, RECIPE the name of a recipe (of a matrix, too) or a file.

    Raises:
        UsageError: There is none, or several recipes of a matrix have it.
    """
    made = [each for each in graph.deliverables if each.family != "report"]
    exact = [each for each in made if f"{each.recipe}:{each.name}" == text]
    recipe, _, name = text.rpartition(":")
    found = exact or [each for each in made if each.name == name]
    if not found:
        known = list(dict.fromkeys(each.name for each in made))
        raise UsageError(
            f"'{recipe}' has no variant '{name}'; it has {', '.join(known)}",
            fix=did_you_mean(name, known),
        )
    if len(found) > 1:
        names = [f"{each.recipe}:{each.name}" for each in found]
        raise UsageError(
            f"'{name}' is a variant of several recipes: {', '.join(names)}",
            fix=f"write {names[0]}",
        )
    return found[0]


def find_step(graph: Graph, text: str) -> str:
    """The full name of the step that `text` means.

    Args:
        graph: The recipe's graph.
        text: As typed: `RECIPE:STEP`, RECIPE the name of a recipe (of a matrix, too) or a file.

    Raises:
        UsageError: There is none, or several recipes of a matrix have it.
    """
    if text in graph.addresses:
        return graph.resolve(text)
    step = text.rpartition(":")[2]
    found = sorted(name for name, address in graph.addresses.items() if address.local == step)
    if len(found) == 1:
        return graph.resolve(found[0])
    if found:
        raise UsageError(
            f"'{step}' is a step of several recipes: {', '.join(found)}", fix=f"write {found[0]}"
        )
    known = sorted({address.local for address in graph.addresses.values()})
    raise UsageError(
        f"there is no step '{step}'; there are {', '.join(known)}", fix=did_you_mean(step, known)
    )
