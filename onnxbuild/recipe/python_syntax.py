"""Find syntax errors in the Python that recipes name, without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from onnxbuild.core.errors import RecipeError, RecipeErrors
from onnxbuild.core.places import real_path
from onnxbuild.core.recipe import Entrypoint, Recipe


def check_python(recipes: Iterable[Recipe], project: Path) -> None:
    """Parse every file of Python that the recipes name.

    A model whose framework is in an environment of its own may be written for another Python, and is
    left out.

    Args:
        recipes: Loaded ones.
        project: The root that their paths are relative to.

    Raises:
        RecipeErrors: All files with a syntax error, each with its line and a caret.
    """
    files = {
        file for recipe in recipes for each in _callables(recipe) for file in _files(each, project)
    }
    faults = [fault for file in sorted(files) if (fault := _fault(file, project)) is not None]
    if faults:
        raise RecipeErrors(faults)


def _callables(recipe: Recipe) -> Iterator[Entrypoint]:
    if recipe.environment is None:
        yield recipe.model
    yield from recipe.entrypoints.values()


def _files(entrypoint: Entrypoint, project: Path) -> Iterator[Path]:
    """Yield the file of `FILE.py:CALLABLE`, or that of a module of the project."""
    home, _, name = entrypoint.target.rpartition(":")
    if not home or not name:
        return
    if home.endswith(".py"):
        yield project / real_path(home, entrypoint.outside)
        return
    for root in entrypoint.roots:
        folder = project / real_path(root, entrypoint.outside)
        for path in (f"{home.replace('.', '/')}.py", f"{home.replace('.', '/')}/__init__.py"):
            if (folder / path).is_file():
                yield folder / path
                return


def _fault(file: Path, project: Path) -> RecipeError | None:
    shown = str(file.relative_to(project) if file.is_relative_to(project) else file)
    try:
        source = file.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        return RecipeError(
            f"{error.msg}{_marked(error)}",
            where=f"{shown}:{line}:{column}",
            fix=f"mend line {line} of {shown}",
        )
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return RecipeError(f"it can't be parsed: {error}", where=shown, fix=f"look at {shown}")
    return None


def _marked(error: SyntaxError) -> str:
    """Return the line with a caret below it; empty where Python does not give it."""
    if not error.text:
        return ""
    line = error.text.rstrip("\n")
    before = line[: max((error.offset or 1) - 1, 0)]
    indent = len(line) - len(line.lstrip())
    caret = "".join("\t" if char == "\t" else " " for char in before[indent:])
    return f"\n    {line.lstrip()}\n    {caret}^"
