"""Recipes that a test writes into a folder of its own, beside a model, and loads."""

from collections.abc import Callable
from pathlib import Path

import pytest

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.recipe.load import LoadedRecipes, load_recipes

Load = Callable[..., LoadedRecipes]


def loader(
    folder: Path, *, before: str = "", model: str = "def load(): ...\n", name: str = "demo"
) -> Load:
    """A function from a recipe's text, and settings, to what it loads as.

    Args:
        folder: The project's.
        before: Goes before each text.
        model: The source of `model.py`.
        name: The recipe's, in the texts.
    """
    (folder / "pyproject.toml").write_text("")
    (folder / "model.py").write_text(model)

    def load(text: str, other: str = "", **settings: str) -> LoadedRecipes:
        path = folder / f"{other or name}.yaml"
        whole = before + text
        path.write_text(whole.replace(f"name: {name}", f"name: {other}") if other else whole)
        return load_recipes(path, project=folder, overrides=settings)

    return load


def faults(load: Load, text: str) -> list[tuple[str, str, str]]:
    """(what, where, fix) of each fault of a text."""
    with pytest.raises(RecipeErrors) as caught:
        load(text)
    return [(fault.what, fault.where, fault.fix) for fault in caught.value.faults]


def assert_a_fault(load: Load, recipe: str, what: str, fix: str) -> None:
    """The recipe `demo` has a fault that says both, and all of its faults are at a line."""
    found = faults(load, f"version: 1\nname: demo\n{recipe}")
    assert any(what in each for each, _, _ in found), found
    assert any(fix in each for _, _, each in found), found
    assert all(where.startswith("demo.yaml:") for _, where, _ in found)
