"""Open the model of a folder of out/ with the load.py that is in it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

LOADER_FILE = "load.py"


class _NoBytecode(SourceFileLoader):
    """Reads the source, and leaves no __pycache__ in the folder."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source as it is now."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def loader_of(folder: Path) -> Callable[..., Any] | None:
    """Return `load` of a bundle's load.py; None where the folder has none.

    Args:
        folder: A folder of out/.
    """
    file = folder / LOADER_FILE
    if not file.is_file():
        return None
    name = "onnxbuild_bundle_load"
    spec = ModuleSpec(name, _NoBytecode(name, str(file)), origin=str(file))
    spec.has_location = True
    module: ModuleType = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    load: Callable[..., Any] = module.load
    return load
