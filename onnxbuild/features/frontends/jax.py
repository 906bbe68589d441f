"""JAX: a function, or a function and its parameters, converted by jax2onnx and held against JAX."""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.draft import Draft
from onnxbuild.core.params import option
from onnxbuild.expansion.model_source import ModelSource
from onnxbuild.frontend_steps.converted import framework_frontend
from onnxbuild.onnxkit.converters.frameworks import ENVIRONMENT_HELP, JAX, FrameworkEnvironment
from onnxbuild.onnxkit.sources.parts import BATCH, completed_axes
from onnxbuild.regular_files import read_user_file

_FRAMEWORKS = frozenset({"jax", "flax", "equinox", "haiku"})

_OTHERS = frozenset({"torch"})

_PAIR = 2

Function = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class JaxOptions:
    """Keys next to `jax` in `model`, besides those of a callable."""

    environment: FrameworkEnvironment | None = option(None, help=ENVIRONMENT_HELP)


def _draft(file: Path, name: str) -> Draft | None:
    """A recipe whose inputs have the names of the function's arguments, and shapes to fill in."""
    names = jax_arguments(read_user_file(file), name)
    if names is None:
        return None
    inputs = {each: {"dtype": "float32", "shape": [BATCH, 1]} for each in names or ("x",)}
    recipe = {"dummy_inputs": inputs, "dynamic_axes": completed_axes([[BATCH]], {})}
    hole = f"type and shape of what {name}'s function takes"
    return Draft(
        recipe,
        {"dynamic_axes": "a usual range"},
        {f"dummy_inputs.{each}": hole for each in inputs},
    )


def jax_arguments(source: bytes, name: str) -> tuple[str, ...] | None:
    """Return the inputs of the function that a callable returns, as far as its text says them.

    Args:
        source: Of the Python file.

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


FEATURE = framework_frontend(
    JAX,
    ModelSource(
        help="FILE.py:CALLABLE, relative to this file, which returns a function of JAX arrays, or (function, params)",
        options=JaxOptions,
        is_callable=True,
        draft=_draft,
    ),
    "jax",
    is_traced=True,
)
