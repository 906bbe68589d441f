"""Find the names that a Python file defines, and syntax errors in it, without running it."""

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from onnxbuild.core.errors import RecipeError, RecipeErrors
from onnxbuild.core.places import real_path
from onnxbuild.core.recipe import Entrypoint, Recipe


def top_level_names(source: bytes) -> frozenset[str] | None:
    """The names that a Python file binds; None where that can't be known without running it."""
    tree = _tree(source)
    if tree is None:
        return None  # the step that imports it reports it, with the interpreter's own words
    names: set[str] = set()
    for node in _at_module_level(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return None if names & {"*", "__getattr__"} else frozenset(names)


def _tree(source: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def likely_models(source: bytes) -> list[str]:
    """Public callables that a Python file defines, the likeliest to return a model without arguments first.

    Functions come before classes, of either those named as loaders first; what needs an argument is last.
    """
    tree = _tree(source)
    found: list[tuple[bool, bool, bool, str]] = []
    for node in tree.body if tree else ():
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            is_loader = node.name.startswith(_LOADERS)
            found.append(
                (_needs_arguments(node), isinstance(node, ast.ClassDef), not is_loader, node.name)
            )
    return [name for *_, name in sorted(found, key=lambda each: each[:-1])]


_LOADERS = ("load", "build", "make", "create", "get_model", "model")


def _needs_arguments(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Return whether a call without arguments must fail; of a class, by its own `__init__`."""
    if isinstance(node, ast.ClassDef):
        inits = (each for each in node.body if isinstance(each, ast.FunctionDef))
        init = next((each for each in inits if each.name == "__init__"), None)
        return init is not None and _needs(init.args, bound=1)
    return _needs(node.args, bound=0)


def _needs(arguments: ast.arguments, bound: int) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args) - bound
    return positional > len(arguments.defaults) or None in arguments.kw_defaults


def _at_module_level(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all nodes but those inside functions and classes."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def check_python(recipes: Iterable[Recipe], project: Path) -> None:
    """Parse every file of Python that the recipes name.

    A model whose framework is in an environment of its own may be written for another Python, and is
    left out.

    Args:
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
