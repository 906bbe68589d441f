"""A catalog of cheap kinds by the names of the real ones, and an executor that runs them in this process.

Each has the parameters, inputs, outputs and entrypoints of the real kind, so recipes, graphs, keys,
reasons and locks are the real ones; only `run` is another: it writes a few bytes that follow from
parameters, inputs and what the user's callables give. For tests of what is done with results.

Models are callables that return text: `load()` of a recipe's model gives what its ONNX would be.
"""

import ast
import hashlib
import itertools
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from onnxbuild.building.wiring import Workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.cli.kinds import Kinds
from onnxbuild.core.action import Expense, Listing, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import canonical_json
from onnxbuild.core.errors import BuildError, NotApplicableError, StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.ports import Done, Host, Job
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import MODEL_FILE, REPORT_FILE, Finding, Outcome, StepContext, StepKind

UNREACHABLE_SQNR_DB = 900.0
"""Gates that ask for as much fail: what `validate` finds is 60 dB."""

_FIRST_VERSION = 1000
"""Added to the real kind's: nobody takes a result of these for one of that."""

_FILES = {"onnx-model": MODEL_FILE, "bundle": MODEL_FILE}
_MEMORY_BYTES = 1 << 20
_METRICS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "provider": lambda p: {"target": p.target.name, "loads": [], "absent": ""},
    "validate": lambda p: {"max_abs": 1e-6, "cosine_min": 1.0, "sqnr_db_min": 60.0},
    "package": lambda p: {"model_bytes": 64},
    "benchmark": lambda p: {"variants": {}, "noisy": False},
    "choose": lambda p: {"chosen": "fp32"},
    "session": lambda p: {"chosen": "{}"},
}


def _run_of(kind: StepKind) -> Callable[[StepContext], Outcome]:
    def run(context: StepContext) -> Outcome:
        said = {each.target: _said(context, each) for each in kind.entrypoints(context.params)}
        if (
            kind.name == "export"
        ):  # what it exports: an edit that leaves the model alone is cut off
            made = {"said": [*said.values()], "opset": context.params.opset}
        else:
            inputs = {name: _digest(context.input(name)) for name in context.input_names}
            made = {"kind": kind.name, "params": to_json(context.params), "inputs": inputs} | said
        if kind.measures:
            made |= {"points": {"example": time.perf_counter_ns()}}
        for name, artifact in kind.outputs.items():
            content = {} if (kind.name, name) == ("export", "config") else made
            file = context.output(name) / _FILES.get(artifact, REPORT_FILE)
            file.write_bytes(canonical_json(content))
            if artifact == "bundle":
                (context.output(name) / "manifest.json").write_bytes(b"{}")
        metrics = _METRICS.get(kind.name, lambda params: {})(context.params)
        return Outcome(metrics=metrics, findings=tuple(_breaches(kind, context)))

    return run


def _said(context: StepContext, entrypoint: Entrypoint) -> str:
    if not entrypoint.target.partition(":")[0].endswith(".py"):
        return ""  # data that a file holds, or that is made up
    return str(context.load(entrypoint)(**entrypoint.args))


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def _breaches(kind: StepKind, context: StepContext) -> Iterator[Finding]:
    if (
        kind.name == "validate"
        and (context.params.tolerances.sqnr_db_min or 0.0) > UNREACHABLE_SQNR_DB
    ):
        yield Finding("60 dB is under the bound", context.where, "lower it")


CHEAP: Mapping[str, StepKind] = {
    name: replace(kind, version=kind.version + _FIRST_VERSION, run=_run_of(kind))
    for name, kind in CATALOG.items()
}


class _Context:
    """The StepContext of a step in this process."""

    def __init__(self, job: Job, folder: Path, workspace: Workspace) -> None:
        self.params = job.step.params
        self.where = job.step.name
        self.memory_bytes = _MEMORY_BYTES
        self.outputs: dict[str, Path] = {}
        self.used: list[str] = []
        self._folder = folder
        self._project = workspace.project
        self._inputs = {name: folder / "in" / str(n) for n, name in enumerate(job.inputs)}
        for name, artifact in job.inputs.items():
            for path, blob in workspace.store.paths(artifact).items():
                target = self._inputs[name] / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(blob)

    @property
    def scratch(self) -> Path:
        raise NotImplementedError("cheap kinds need none")

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(self._inputs)

    def input(self, name: str) -> Path:
        return self._inputs[name]

    def output(self, name: str) -> Path:
        self.outputs[name] = self._folder / "out" / name
        self.outputs[name].mkdir(parents=True, exist_ok=True)
        return self.outputs[name]

    def load(self, entrypoint: Entrypoint) -> Callable[..., Any]:
        file, _, name = entrypoint.target.partition(":")
        self.used.append(file)
        path = self._project / file
        spec = spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)

        def call(**arguments: Any) -> Any:
            with _importing_from(path.parent):
                spec.loader.exec_module(module)  # type: ignore[union-attr]
                return getattr(module, name)(**arguments)

        return call

    def files(self, entrypoint: Entrypoint) -> tuple[tuple[str, Path], ...]:
        return tuple((path, self._project / path) for path in entrypoint.files)


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Import modules of `folder`, and forget them and their bytecode."""
    before, writes = set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(f"{folder}/"):
                del sys.modules[name]


class _InlineExecutor:
    """Runs cheap kinds one after another, as they are waited for."""

    _numbers = itertools.count()

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._hosts = (workspace.host(),)
        self._temp = workspace.root / "tmp" / f"inline-{next(self._numbers)}"
        self._queue: deque[Job] = deque()
        self._count = 0

    def hosts(self) -> Sequence[Host]:
        return self._hosts

    def expect(self) -> None:
        """Always ready."""

    def start(self, job: Job) -> None:
        self._queue.append(job)

    def wait(self, timeout_s: float) -> list[Done]:
        del timeout_s
        return [self._run(self._queue.popleft())] if self._queue else []

    def close(self) -> None:
        shutil.rmtree(self._temp, ignore_errors=True)

    def _run(self, job: Job) -> Done:
        self._count += 1
        folder = self._temp / str(self._count)
        folder.mkdir(parents=True)
        job.log.parent.mkdir(parents=True, exist_ok=True)
        job.log.write_text(f"{job.step.kind} in this process\n")
        context = _Context(job, folder, self._workspace)
        expense = Expense(0.0, 0.0, _MEMORY_BYTES)
        try:
            outcome = CHEAP[job.step.kind].run(context)
            outputs = self._taken(job, context.outputs)
        except NotApplicableError as error:
            outcome = Outcome(not_applicable=Finding(error.what, error.where, error.fix))
            outputs = {}
        except BuildError as error:
            return Done(job, None, {}, Observed(), expense, error)
        except Exception as error:  # noqa: BLE001 - the user's
            failure = StepError(f"{type(error).__name__}: {error}", where=job.step.name)
            return Done(job, None, {}, Observed(), expense, failure)
        return Done(job, outcome, outputs, self._observed(context.used), expense, None)

    def _taken(self, job: Job, made: Mapping[str, Path]) -> dict[str, Artifact]:
        store = self._workspace.store
        return {name: store.ingest(folder, job.outputs[name]) for name, folder in made.items()}

    def _observed(self, files: list[str]) -> Observed:
        """The sources that `files` import, from the folders that they are in; what was looked for there."""
        prints = self._workspace.fingerprints
        sources: dict[str, str] = {}
        looked: dict[str, set[str]] = {}
        stack = list(files)
        while stack:
            file = stack.pop()
            digest = prints.source(file)
            if digest is None or file in sources:
                continue
            sources[file] = digest
            folder = Path(file).parent.as_posix()
            for name in _imported((self._workspace.project / file).read_text()):
                looked.setdefault(folder, set()).add(name)
                package = Path(folder) / name / "__init__.py"
                is_package = (self._workspace.project / package).is_file()
                stack.append((package if is_package else Path(folder) / f"{name}.py").as_posix())
        listings: dict[str, Listing] = {
            folder: prints.listing(folder, sorted(names)) for folder, names in looked.items()
        }
        return Observed(sources=dict(sorted(sources.items())), listings=listings)


def _imported(text: str) -> set[str]:
    """Top-level names of the modules that a source imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


KINDS = Kinds(CHEAP, _InlineExecutor)
"""For `onnxbuild.cli.main.run_command`."""
