"""Names of the recipes that a file holds: what is wrong with the rest of it does not matter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnxbuild.core.errors import BuildError
from onnxbuild.document.faults import Faults
from onnxbuild.project_folder import find_project
from onnxbuild.recipe.load import load_recipes
from onnxbuild.recipe.templates.extend import Sources, absolute, read_with_bases
from onnxbuild.regular_files import read_user_file


def names_in(file: Path, environment: Mapping[str, str]) -> frozenset[str]:
    """Names of a file's recipes, of a matrix without `@KEY=VALUE`; empty if they can't be read.

    Args:
        file: A recipe's file; it need not be there.
        environment: Where the variables named by `env` lists are looked up.
    """
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
