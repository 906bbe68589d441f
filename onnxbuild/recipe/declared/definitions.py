"""Find the names that a Python file defines, without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator


def top_level_names(source: bytes) -> frozenset[str] | None:
    """The names that a Python file binds; None where that can't be known without running it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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


def _at_module_level(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all nodes but those inside functions and classes."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
