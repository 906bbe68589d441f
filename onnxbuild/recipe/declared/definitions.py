"""Find the names that a Python file defines, without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator


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
