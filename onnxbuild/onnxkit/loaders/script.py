"""Put the load.py of a bundle together: one stand-alone file of the parts that a runtime needs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Literal

from onnxbuild.host import cpu
from onnxbuild.onnxkit.loaders import (
    decoding,
    golden_run,
    onnx_bundle,
    operator_libraries,
    program_bundle,
    shared,
    text_run,
)

Runtime = Literal["onnxruntime", "torch"]
"""The package that runs a bundle's model."""

_OWN: Mapping[Runtime, ModuleType] = {"onnxruntime": onnx_bundle, "torch": program_bundle}
_OPTIONS = "session_options(settings, options),"
_WITH_OPERATORS = "with_operators(manifest, session_options(settings, options), options),"


@cache
def load_script(runtime: Runtime, *, operators: bool = False) -> str:
    """Return load.py for a runtime; it imports the standard library and that runtime alone.

    Args:
        runtime: The package that opens the model.
        operators: The bundle has libraries of custom operators, which ONNX Runtime has to register.
    """
    own = _OWN[runtime]
    parts = (cpu, shared, *((operator_libraries,) if operators else ()), own)
    plain: set[str] = set()
    named: dict[str, set[str]] = {}
    bodies = []
    for module in parts:
        statements, body = _split(module)
        bodies.append(body)
        for each in statements:
            names = {alias.name for alias in each.names}
            if isinstance(each, ast.Import):
                plain |= names
            elif str(each.module).partition(".")[0] not in {"onnxbuild", "__future__"}:
                named.setdefault(str(each.module), set()).update(names)
    lines = [f"import {name}" for name in sorted(plain)]
    lines += [f"from {name} import {', '.join(sorted(named[name]))}" for name in sorted(named)]
    head = f'"""{own.__doc__}"""\n\nfrom __future__ import annotations\n'
    script = "\n".join([head, *lines, "", "\n\n\n".join(bodies)]) + "\n"
    if operators:
        assert script.count(_OPTIONS) == 1
        script = script.replace(_OPTIONS, _WITH_OPERATORS)
    return script


@cache
def golden_script() -> str:
    """Return the __main__.py of a package that holds load.py and golden inputs; it needs numpy, too."""
    text = Path(str(golden_run.__file__)).read_text(encoding="utf-8")
    own = "from onnxbuild.onnxkit.loaders.onnx_bundle import load\n"
    shared_name = "from onnxbuild.onnxkit.loaders.shared import LoadError\n"
    before, _, after = text.partition(own + shared_name)
    return f"{before}from .load import LoadError, load\n{after}"


@cache
def run_script() -> str:
    """Return the run.py of a decoder's bundle, next to load.py; it needs numpy, too."""
    text = Path(str(text_run.__file__)).read_text(encoding="utf-8")
    own = "from onnxbuild.onnxkit.loaders.decoding import chosen\nfrom onnxbuild.onnxkit.loaders.onnx_bundle import load\n"
    before, _, after = text.partition(own)
    names, _, after = after.partition("\n")
    named = names.rpartition(" import ")[2]
    choice = inspect.getsource(decoding.chosen)
    return f"{before}from load import {named}, load\n\n\n{choice}{after}"


def _split(module: ModuleType) -> tuple[list[ast.Import | ast.ImportFrom], str]:
    """Return a module's imports, and its text below them."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    _, *statements = ast.parse(text).body
    imports = [each for each in statements if isinstance(each, ast.Import | ast.ImportFrom)]
    last = max(each.end_lineno or 0 for each in imports)
    return imports, "\n".join(text.splitlines()[last:]).strip()
