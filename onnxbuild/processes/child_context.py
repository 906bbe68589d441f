"""Context of a running step: its folders, its parameters, the user's callables."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.adapters.toolchain.import_variables import PYTHON_PATH, declared_path
from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.places import real_path
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.onnxkit.host.progress import report


class ChildContext:
    """The StepContext of a running child.

    Args:
        job: What the parent asks for.
    """

    def __init__(self, job: Mapping[str, Any], folder: Path, params: Any) -> None:
        self.params = params
        self.where: str = job["step"]
        self.memory_bytes: int = job["memory_bytes"]
        self._folder = folder
        self._project = Path(job["project"])
        self._places: Mapping[str, str] = job["places"]
        self._inputs = {name: Path(path) for name, path in job["inputs"].items()}
        self.outputs: dict[str, Path] = {}

    @property
    def scratch(self) -> Path:
        """A folder of its own."""
        return self._folder / "scratch"

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs' names, in order."""
        return tuple(self._inputs)

    def input(self, name: str) -> Path:
        """The folder of an input artifact."""
        return self._inputs[name]

    def output(self, name: str) -> Path:
        """The folder of an output artifact."""
        folder = self._folder / "out" / name
        folder.mkdir(parents=True, exist_ok=True)
        self.outputs[name] = folder
        return folder

    def load(self, entrypoint: Entrypoint) -> Callable[..., Any]:
        """Import the user's callable, with the arguments that `python FILE` would have.

        Raises:
            StepError: File, module or attribute is missing, raises on import, or can't be called.
        """
        target, _, attribute = entrypoint.target.rpartition(":")
        found = self.module(entrypoint)
        for part in attribute.split("."):
            if not hasattr(found, part):
                raise StepError(
                    f"'{target}' has no '{attribute}'",
                    where=target,
                    fix=did_you_mean(part, dir(found)) or "name a function that the file defines",
                )
            found = getattr(found, part)
        if not callable(found):
            raise StepError(
                f"'{entrypoint.target}' is of type {type(found).__name__}; expected a callable",
                where=target,
                fix="name a function or a class",
            )
        return found  # type: ignore[no-any-return]

    def module(self, entrypoint: Entrypoint) -> Any:
        """Import the module of an entrypoint; see `load`."""
        target = entrypoint.target.rpartition(":")[0]
        for root in reversed(entrypoint.roots):
            folder = str(self._project / real_path(root, self._places))
            if folder not in sys.path:
                sys.path.insert(0, folder)
        os.environ.update(entrypoint.env)
        declared = declared_path(entrypoint.env, str(self._project))
        if declared:
            os.environ[PYTHON_PATH] = os.pathsep.join(declared)  # whatever folder a child works in
        sys.path[len(entrypoint.roots) : 0] = [
            folder for folder in declared if folder not in sys.path
        ]
        sys.argv[:] = [real_path(target, self._places) if target.endswith(".py") else ""]
        sys.orig_argv[:] = [sys.executable, *sys.argv]
        return self._import(target)

    def code(self, entrypoint: Entrypoint) -> tuple[str, list[str]]:
        """Return where a callable is defined: its file or module, and the folders of the import path."""
        target = entrypoint.target.rpartition(":")[0]
        folders = [str(self._project / real_path(root, self._places)) for root in entrypoint.roots]
        if not target.endswith(".py"):
            return target, folders
        return str(self._project / real_path(target, self._places)), folders

    def place(self, name: str) -> Path | None:
        """The folder of a member of the kind's toolchain."""
        return Path(self._places[name]) if name in self._places else None

    def files(self, entrypoint: Entrypoint) -> tuple[tuple[str, Path], ...]:
        """The declared files: name, place."""
        return tuple(
            (path, self._project / real_path(path, self._places)) for path in entrypoint.files
        )

    def progress(self, done: float, total: float = 0, unit: str = "", note: str = "") -> None:
        """Report how far the step is."""
        report(done, total, unit, note)

    def _import(self, target: str) -> Any:
        if not target.endswith(".py"):
            try:
                return importlib.import_module(target)
            except ModuleNotFoundError as error:
                if error.name and target.startswith(error.name):
                    raise StepError(
                        f"no module named '{error.name}'",
                        where=target,
                        fix="install it, or write FILE.py:CALLABLE",
                    ) from error
                raise
        path = self._project / real_path(target, self._places)
        name = path.stem
        loaded = sys.modules.get(name)
        if loaded is not None and getattr(loaded, "__file__", None) == str(path):
            return loaded
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise StepError(f"there is no file '{target}'", where=target)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
