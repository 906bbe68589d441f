"""Read the names of a JAX function's arguments from its Python file, without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

_FRAMEWORKS = frozenset({"jax", "flax", "equinox", "haiku"})
_OTHERS = frozenset({"torch"})
_PAIR = 2

Function = ast.FunctionDef | ast.Lambda


def jax_arguments(source: bytes, name: str) -> tuple[str, ...] | None:
    """Return the inputs of the function that a callable returns, as far as its text says them.

    Args:
        source: Of the Python file.
        name: The callable.

    Returns: Empty where the function can't be seen; None if the file does not import JAX, or PyTorch too.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    imported = set(_imported(tree))
    if not imported & _FRAMEWORKS or imported & _OTHERS:
        return None
    functions = {each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    made = functions.get(name)
    for each in ast.walk(made) if made is not None else ():
        if isinstance(each, ast.Return) and each.value is not None:
            found = _returned(each.value, functions)
            if found:
                return found
    return ()


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _returned(value: ast.expr, functions: dict[str, ast.FunctionDef]) -> tuple[str, ...]:
    is_pair = isinstance(value, ast.Tuple) and len(value.elts) == _PAIR
    function = value.elts[0] if isinstance(value, ast.Tuple) and is_pair else value
    if isinstance(function, ast.Name):
        known: Function | None = functions.get(function.id)
    else:
        known = function if isinstance(function, ast.Lambda) else None
    if known is None:
        return ()
    arguments = [*known.args.posonlyargs, *known.args.args]
    needed = arguments[: len(arguments) - len(known.args.defaults)]
    return tuple(each.arg for each in needed[1 if is_pair else 0 :])
