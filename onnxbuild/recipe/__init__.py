"""YAML, Jinja and JSON Schema -> Recipe, every value with its line and column."""

from onnxbuild.recipe.load import LoadedRecipes, load_recipes
from onnxbuild.recipe.project import find_project
from onnxbuild.recipe.schema import recipe_schema, schema_text

__all__ = ["LoadedRecipes", "find_project", "load_recipes", "recipe_schema", "schema_text"]
