"""A variant of a build: its model, a session, its metrics, its verdicts."""

import os
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from onnxbuild.building.request import Request
from onnxbuild.core.environment import RUNTIME
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import FAMILIES
from onnxbuild.output.build import FindingRecord, ResultRecord, VariantRecord
from onnxbuild.python.metrics import Metrics, public_names, table
from onnxbuild.python.reports import write_report

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


class BuiltVariant:
    """A folder of out/: a variant, an artifact made ahead of time, a program or a package.

    Args:
        record: What the build gave of it.
        build: All that the build gave.
        request: What was asked for.
    """

    __slots__ = ("_build", "_record", "_request")

    def __init__(self, record: VariantRecord, build: ResultRecord, request: Request) -> None:
        self._record, self._build, self._request = record, build, request

    @property
    def name(self) -> str:
        """Its name: `int8`."""
        return self._record["variant"]

    @property
    def recipe(self) -> str:
        """The recipe's name."""
        return self._record["recipe"]

    @property
    def family(self) -> str:
        """`variant`, `artifact`, `program` or `package`."""
        return self._record["family"]

    @property
    def made(self) -> bool:
        """Whether its folder is there."""
        return self._record["made"]

    @property
    def passed(self) -> bool:
        """Whether it was made and its gates passed; gates that were skipped do not count, unless all were."""
        return self._record["passed"]

    @property
    def folder(self) -> Path:
        """Its folder, absolute.

        Raises:
            UsageError: It was not made.
        """
        folder = self._record["folder"]
        if folder is None:
            raise UsageError(f"{self._label} was not made: {self._why_not()}", fix=self._fix())
        return Path(folder)

    @property
    def model(self) -> Path:
        """The file that a runtime opens, absolute: `.../int8/model.onnx`.

        Raises:
            UsageError: It was not made, or is a package that no runtime opens as one file.
        """
        folder, model = self.folder, self._record["model"]
        if model is None:
            raise UsageError(f"{self._label} is not one model file", fix=f"see {folder}")
        return Path(model)

    @property
    def metrics(self) -> Metrics:
        """Metrics that steps measured of it: `metrics["validate.max_abs"]`, `metrics["p50_ms"]`."""
        return Metrics(self._record["metrics"])

    @property
    def findings(self) -> tuple[FindingRecord, ...]:
        """Findings of its gates against it: `what`, `where`, `fix`."""
        return tuple(each for verdict in self._record["verdicts"] for each in verdict["findings"])

    def session(self, target: str = "", **settings: Any) -> Any:
        """Open the model as its bundle says, in this process.

        Args:
            target: One of the recipe's targets; empty for the first that loads here.
            settings: Session settings over the bundle's: `intra_op_threads=1`.

        Returns:
            An onnxruntime.InferenceSession; of a PyTorch program, a function from input name -> array to output name -> array.

        Raises:
            UsageError: It was not made, or its folder has no load.py.
            RuntimeError: It can't be opened here, as the bundle's load.py says.
        """
        load = loader_of(self.folder)
        if load is None:
            of = self._record["of"]
            fix = f"build['{of}'].session() opens its model" if of else f"see {self.folder}"
            raise UsageError(
                f"{self._label} can't be opened from Python: no load.py in it", fix=fix
            )
        if FAMILIES[self.family].runtime != RUNTIME:
            return load()
        return load(target, settings or None)

    def report(self, path: str | os.PathLike[str] = "") -> Path:
        """Write its HTML report, without other variants and recipes; return the path, absolute.

        Args:
            path: The file; empty for `report-RECIPE-VARIANT.html` in the working folder.

        Raises:
            UsageError: It is not built as the recipe is now.
            StoreError: The file can't be written.
        """
        own = path or f"report-{self.recipe}-{self.name}.html"
        return write_report(self._request, own, recipe=self.recipe, bundle=self.name)

    def __repr__(self) -> str:
        return f"<Variant {self._label}, {self._state()}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        return table([self._row()])

    def __dir__(self) -> list[str]:
        return public_names(self)

    @property
    def _label(self) -> str:
        return f"{self.recipe}:{self.name}"

    def _row(self) -> dict[str, str]:
        """Its row of the table: heading -> text."""
        cells = {"recipe": self.recipe, "variant": self.name, **self._record["cells"]}
        return {**cells, "gates": self._state()}

    def _state(self) -> str:
        failed = [each["step"] for each in self._record["verdicts"] if each["state"] == "failed"]
        if failed:
            return f"failed: {', '.join(map(self._short, failed))}"
        if not self.made:
            return "not made"
        skipped = [each["step"] for each in self._record["verdicts"] if each["state"] == "skipped"]
        named = f"skipped: {', '.join(map(self._short, skipped))}" if skipped else ""
        if self.passed:
            return f"passed; {named}" if named else "passed"
        return named or "not passed"

    def _short(self, step: str) -> str:
        """The name of a step of this recipe without the recipe's."""
        return step.removeprefix(f"{self.recipe}:")

    def _why_not(self) -> str:
        if self.findings:
            return self.findings[0]["what"]
        failures = self._build["failures"]
        return failures[0]["what"] if failures else "the build ended before it"

    def _fix(self) -> str:
        found = [*self.findings, *self._build["failures"]]
        return found[0]["fix"] if found else ""
