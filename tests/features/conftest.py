"""The fixtures of recipe tests."""

from tests.recipe.conftest import base, project

__all__ = ["base", "project"]
