from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.core.recipe import Recipe
from onnxbuild.recipe.load import LoadedRecipes, load_recipes

HEAD = """\
version: 1
name: demo
model: models/model.py:load
"""
BASE = (
    HEAD
    + """\
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""
)
MODEL = "def load(hidden=8): ...\ndef samples(): ...\ndef score(outputs, labels): ...\n"


class Project:
    """A project's folder with a model and a recipe to write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("pyproject.toml", "")
        self.write("recipes/models/model.py", MODEL)

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def load(
        self,
        text: str | bytes,
        overrides: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> LoadedRecipes:
        file = self.write("recipes/demo.yaml", text)
        return load_recipes(
            file, project=self.folder, overrides=overrides or {}, environment=environment or {}
        )

    def recipe(self, text: str, overrides: Mapping[str, str] | None = None) -> Recipe:
        (recipe,) = self.load(text, overrides).recipes
        return recipe

    def faults(self, text: str | bytes, overrides: Mapping[str, str] | None = None) -> list[str]:
        """`where: what` of each fault."""
        with pytest.raises(RecipeErrors) as caught:
            self.load(text, overrides)
        return [f"{fault.where}: {fault.what}" for fault in caught.value.faults]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def head() -> str:
    return HEAD


@pytest.fixture
def base() -> str:
    return BASE


Load = Callable[..., LoadedRecipes]
