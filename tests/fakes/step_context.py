"""A StepContext on plain folders, for running a step inside the test's own process."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import Outcome, StepKind
from onnxbuild.onnxkit.host.progress import report


class FolderContext:
    """Inputs are folders given by the test; outputs land below `folder`/out."""

    def __init__(
        self,
        params: Any,
        folder: Path,
        inputs: Mapping[str, Path] | None = None,
        memory_bytes: int = 1 << 40,
        places: Mapping[str, Path] | None = None,
    ) -> None:
        self.params = params
        self.where = "test:step"
        self.memory_bytes = memory_bytes
        self._folder = folder
        self._inputs = dict(inputs or {})
        self._places = dict(places or {})

    @property
    def scratch(self) -> Path:
        folder = self._folder / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(self._inputs)

    def input(self, name: str) -> Path:
        return self._inputs[name]

    def output(self, name: str) -> Path:
        folder = self._folder / "out" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def load(self, entrypoint: Entrypoint) -> Callable[..., Any]:
        """`FILE.py:CALLABLE`, FILE absolute or relative to the working folder."""
        file, _, name = entrypoint.target.partition(":")
        spec = importlib.util.spec_from_file_location(Path(file).stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        value: Callable[..., Any] = getattr(module, name)
        return value

    def code(self, entrypoint: Entrypoint) -> tuple[str, list[str]]:
        """FILE, as it is named."""
        file = entrypoint.target.rpartition(":")[0]
        return file, [str(Path(file).parent)]

    def place(self, name: str) -> Path | None:
        return self._places.get(name)

    def files(self, entrypoint: Entrypoint) -> tuple[tuple[str, Path], ...]:
        """The declared files, absolute or relative to the working folder."""
        return tuple((path, Path(path)) for path in entrypoint.files)

    def progress(self, done: float, total: float = 0, unit: str = "", note: str = "") -> None:
        report(done, total, unit, note)


def run_step(
    kind: StepKind,
    params: Any,
    folder: Path,
    inputs: Mapping[str, Path] | None = None,
    memory_bytes: int = 1 << 40,
    *,
    places: Mapping[str, Path] | None = None,
) -> tuple[Outcome, FolderContext]:
    """Run one step; returns its outcome and the context that knows where the outputs are."""
    context = FolderContext(params, folder, inputs, memory_bytes, places)
    return kind.run(context), context
