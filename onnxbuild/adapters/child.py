"""One step in a process of its own: job.json in, outputs and result.json out."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.adapters.observe import Observer
from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import BuildError, StepError, did_you_mean
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import Outcome

JOB_FILE, RESULT_FILE = "job.json", "result.json"


class ChildContext:
    """The StepContext of a running child.

    Args:
        job: What the parent asks for.
        folder: The job's folder.
        params: Parsed parameters.
    """

    def __init__(self, job: Mapping[str, Any], folder: Path, params: Any) -> None:
        self.params = params
        self.where: str = job["step"]
        self._folder = folder
        self._project = Path(job["project"])
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
        """Import the user's callable.

        Raises:
            StepError: File, module or attribute is missing, raises on import, or can't be called.
        """
        target, _, attribute = entrypoint.target.rpartition(":")
        for root in reversed(entrypoint.roots):
            folder = str(self._project / root)
            if folder not in sys.path:
                sys.path.insert(0, folder)
        os.environ.update(entrypoint.env)
        module = self._import(target)
        found: Any = module
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
                f"'{entrypoint.target}' is a {type(found).__name__}; expected a callable",
                where=target,
                fix="name a function or a class",
            )
        return found  # type: ignore[no-any-return]

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
        path = self._project / target
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


def run_job(folder: Path, owners: Mapping[str, str]) -> int:
    """Run the job that lies in `folder`; its result lies beside it afterwards.

    Returns: 0 when the step made its outputs, 1 when it could not; result.json says which.
    """
    job = json.loads((folder / JOB_FILE).read_bytes())
    kind = CATALOG[job["kind"]]
    ignored = (folder, Path(job["store"]))
    observer = Observer(Path(job["project"]), ignored, owners)
    context = ChildContext(job, folder, from_json(kind.params, job["params"]))
    context.scratch.mkdir()
    os.chdir(context.scratch)
    try:
        if kind.user_code:
            observer.install()
            for entrypoint in kind.entrypoints(context.params):
                for root in entrypoint.roots:
                    observer.refuse_shadows(str(Path(job["project"]) / root))
        outcome = kind.run(context)
        result = _success(context, outcome, observer.report() if kind.user_code else None)
    except BuildError as error:
        result = _failure(error)
    except Exception as error:  # noqa: BLE001 - the child's edge: anything else is told, not lost
        traceback.print_exc()
        result = _failure(_told(error, job["step"], job["project"]))
    text = json.dumps(result, allow_nan=False)
    (folder / RESULT_FILE).write_text(text, encoding="utf-8")
    return 1 if "error" in result else 0


def _success(
    context: ChildContext, outcome: Outcome, observed: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "outcome": dataclasses.asdict(outcome),
        "outputs": {name: str(path) for name, path in context.outputs.items()},
        "observed": observed,
    }


def _failure(error: BuildError) -> dict[str, Any]:
    return {
        "error": {
            "what": error.what,
            "where": error.where,
            "fix": error.fix,
            "exit_code": error.exit_code,
        }
    }


def _told(error: Exception, step: str, project: str) -> BuildError:
    """An unexpected exception as one sentence, at the user's own line where there is one."""
    where = step
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        inside = frame.filename.startswith(f"{project}/")
        installed = "/site-packages/" in frame.filename or "/onnxbuild/" in frame.filename
        if inside and not installed:
            where = f"{frame.filename.removeprefix(f'{project}/')}:{frame.lineno}"
            break
    lines = str(error).strip().splitlines() or ["no message"]
    return StepError(f"{type(error).__name__}: {lines[0]}", where=where)
