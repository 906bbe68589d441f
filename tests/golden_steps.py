"""Digests of the code that makes each step kind's output: `python -m tests.golden_steps` rewrites.

A step's result is found again by its kind's `version`, not by its code: whoever changes what a step
makes raises `version`. A test compares this file with the code, so that nobody forgets to ask.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from onnxbuild.catalog import CATALOG

GOLDEN = Path(__file__).parent / "golden" / "steps.json"
ROOT = Path(__file__).parents[1]
COMPUTING = ("onnxbuild.onnxkit.", "onnxbuild.core.points")
_WITH_DOC_STRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_sha256(text: str) -> str:
    """sha256 of a module's syntax tree, doc strings and positions left out."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOC_STRING) and ast.get_docstring(node) is not None:
            del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


@functools.cache
def _imported(module: str) -> frozenset[str]:
    """The modules that compute and that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(_path(module).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(
        name for name in found if name.startswith(COMPUTING) and _path(name).is_file()
    )


def _path(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


def modules_of(kind: str) -> list[str]:
    """The step's own module and all that it uses to compute, directly or not."""
    seen: set[str] = set()
    stack = [inspect.getmodule(CATALOG[kind].run).__name__]  # type: ignore[union-attr]
    while stack:
        module = stack.pop()
        if module not in seen:
            seen.add(module)
            stack += _imported(module)
    return sorted(seen)


def found() -> dict[str, Any]:
    """What the code is now."""
    kinds = {
        name: {"version": kind.version, "modules": modules_of(name)}
        for name, kind in CATALOG.items()
    }
    modules = sorted({module for each in kinds.values() for module in each["modules"]})
    return {
        "python": sys.implementation.cache_tag,  # another spells some trees otherwise
        "kinds": kinds,
        "modules": {module: code_sha256(_path(module).read_text()) for module in modules},
    }


def main() -> None:
    """Write what the code is now."""
    GOLDEN.write_text(json.dumps(found(), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
