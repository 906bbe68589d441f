"""A recipe's file -> recipes, or all of its faults; or the names of its recipes alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.core.recipe import Recipe
from onnxbuild.document.faults import Faults, hinted, nearest
from onnxbuild.project_folder import RECIPES_FOLDER, find_project
from onnxbuild.regular_files import read_user_file

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LoadedRecipes:
    """The recipes of one file, and the files that decided them.

    Attributes:
        recipes: One, or one for each combination of its matrix.
        files: Every recipe and base file that was read, absolute.
        folders: Every folder (or link) that decided what a glob of `files` names, absolute.
        code: (source file, absolute; name that it was asked to define), for each entrypoint.
        models: Files of models that said what a recipe leaves out, absolute.
    """

    recipes: tuple[Recipe, ...]
    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    code: tuple[tuple[Path, str], ...]
    models: tuple[Path, ...] = ()

    @property
    def witnesses(self) -> tuple[Path, ...]:
        """Every file and folder that decided the recipes, those of `code` excepted."""
        return (*self.files, *self.models, *self.folders)


def load_recipes(
    path: Path,
    *,
    project: Path,
    overrides: Mapping[str, str] = _NONE,
    environment: Mapping[str, str] = _NONE,
) -> LoadedRecipes:
    """Read, merge, render, check and parse a recipe.

    Args:
        project: The project's root; paths in recipes and messages are relative to it.
        overrides: `--set`: a var, a matrix name or a dotted key -> a YAML scalar.
        environment: Where the variables named by `env` lists are looked up.

    Raises:
        UsageError: There is no such file, or it can't be read.
        RecipeErrors: All faults of the recipe.
    """
    from onnxbuild.recipe.assemble import Loader  # imports yaml and jsonschema
    from onnxbuild.recipe.templates.extend import absolute

    file, root = absolute(path), absolute(project)
    content = _read(file, path)
    loader = Loader(root, environment)
    recipes = loader.load(file, content, overrides)
    return LoadedRecipes(
        recipes,
        files=tuple(loader.files()),
        folders=tuple(sorted(loader.folders())),
        code=tuple(sorted(loader.code())),
        models=tuple(sorted(loader.models())),
    )


def _nearest_file(file: Path) -> str:
    """Return the recipe file that `file` seems to mean, next to it or in recipes/ there; empty if none is alike."""
    if near := nearest(file.name, [each.name for each in sorted(file.parent.glob("*.y*ml"))]):
        return near
    below = {
        each.stem: each.name for each in sorted((file.parent / RECIPES_FOLDER).glob("*.y*ml"))
    }
    near = nearest(file.stem, below)
    return f"{RECIPES_FOLDER}/{below[near]}" if near else ""


def _read(file: Path, shown: Path) -> bytes:
    try:
        return read_user_file(file)
    except FileNotFoundError:
        near = _nearest_file(file)
        fix = f"write `{shown.parent / near}`" if near else "write its path"
        raise UsageError(hinted(f"there is no recipe {shown}", near), fix=fix) from None
    except IsADirectoryError:
        fix = f"name a file in it, such as {shown / 'NAME.yaml'}"
        raise UsageError(f"{shown} is a folder; expected a recipe", fix=fix) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        fix = "check the path and its permissions"
        raise UsageError(f"can't read recipe {shown}: {reason}", fix=fix) from None


def names_in(file: Path, environment: Mapping[str, str]) -> frozenset[str]:
    """Names of a file's recipes, of a matrix without `@KEY=VALUE`; empty if they can't be read.

    What is wrong with the rest of the file does not matter.

    Args:
        file: A recipe's file; it need not be there.
        environment: Where the variables named by `env` lists are looked up.
    """
    from onnxbuild.recipe.templates.extend import Sources, absolute, read_with_bases

    path, project = absolute(file), absolute(find_project(file))
    try:
        root, _ = read_with_bases(path, read_user_file(path), Sources(project), Faults())
    except (OSError, ValueError):
        return frozenset()
    name = None if root is None else root.child("name")
    if name is None or not isinstance(name.value, str):
        return frozenset()
    if not name.templated:
        return frozenset({name.value})
    try:
        loaded = load_recipes(path, project=project, environment=environment)
    except BuildError:
        return frozenset()
    return frozenset(recipe.base for recipe in loaded.recipes)
