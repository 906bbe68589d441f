"""Write what CI reads of a run: JUnit XML, annotations, the job's summary; of one that was refused, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.adapters import locate
from onnxbuild.adapters.clock import run_id
from onnxbuild.adapters.disk.atomic_files import store_error
from onnxbuild.api import BuildResult
from onnxbuild.ci.github import (
    Annotation,
    annotations_of_error,
    annotations_of_failures,
    annotations_of_notes,
    workflow_command,
)
from onnxbuild.ci.job_summary import summary_of_error, summary_of_run
from onnxbuild.ci.recorder import Recorder
from onnxbuild.core.errors import BuildError
from onnxbuild.outcome import run_result
from onnxbuild.output.errors import error_record
from onnxbuild.recipe.project import find_project

_CHECKOUT, _SUMMARY, _OUTPUT = "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"


@dataclass(slots=True)
class CiOutputs:
    """What a run was asked to leave for CI.

    Attributes:
        recipes: The recipes that it builds.
        say: Prints a line for GitHub.
        junit: File for JUnit XML; None for none.
        github: Whether to write for GitHub.
        recorder: A sink for the run's events.
        started: When the run began, as JUnit writes it.
    """

    recipes: tuple[Path, ...]
    say: Callable[[str], None]
    junit: Path | None = None
    github: bool = False
    recorder: Recorder = field(default_factory=Recorder)
    started: str = field(default_factory=lambda: _stamp(run_id()))

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Write an error that ends the run before anything is built, and pass it on."""
        try:
            yield
        except BuildError as error:
            if self.junit is not None:
                from onnxbuild.ci.junit import junit_of_error

                _write(self.junit, junit_of_error(self.recipes, error, self.started))
            self.annotate(annotations_of_error(error))
            if self.github:
                _append(_SUMMARY, summary_of_error(error_record(error)))
                set_outputs({"exit-code": str(error.exit_code)})
            raise

    def finish(self, result: BuildResult, end: str) -> None:
        """Write what a run gave.

        Args:
            result: The run.
            end: The line that it ends with on a terminal.
        """
        if self.junit is not None:
            from onnxbuild.ci.junit import junit_of_run

            made = junit_of_run(result.graph, result.report, self.recorder, self.started)
            _write(self.junit, made)
        if self.github:
            found = run_result(result, self.recorder.logs)
            self.annotate(annotations_of_failures(found["failures"]))
            _append(_SUMMARY, summary_of_run(found, end))
            set_outputs({"exit-code": str(result.exit_code), "out": found["out"]})

    def annotate_notes(self, notes: Iterable[str]) -> None:
        """Write remarks on recipes as notices.

        Args:
            notes: A line each.
        """
        self.annotate(annotations_of_notes(notes))

    def annotate(self, annotations: Iterable[Annotation]) -> None:
        """Write annotations, where they are asked for.

        Args:
            annotations: Any.
        """
        if not self.github:
            return
        project = find_project(self.recipes[0] if self.recipes else Path("recipe.yaml"))
        checkout = Path(locate.environment().get(_CHECKOUT) or Path.cwd())
        for each in annotations:
            self.say(workflow_command(each, project, checkout))


def set_outputs(values: Mapping[str, str]) -> None:
    """Set outputs of the step of a GitHub job; nothing elsewhere.

    Args:
        values: Name -> value; one of several lines is written between marks that it does not hold.
    """
    lines = []
    for name, value in values.items():
        mark = "onnxbuild"
        while mark in value:
            mark += "-"
        lines += [f"{name}<<{mark}", value, mark] if "\n" in value else [f"{name}={value}"]
    _append(_OUTPUT, "".join(f"{line}\n" for line in lines))


def _append(variable: str, text: str) -> None:
    """Append to the file that a variable of GitHub's names."""
    name = locate.environment().get(variable)
    if not name:
        return
    try:
        with Path(name).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise store_error(error, Path(name)) from error


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise store_error(error, path) from error


def _stamp(run: str) -> str:
    """YYYY-MM-DDTHH:MM:SS of a run's id."""
    return f"{run[:4]}-{run[4:6]}-{run[6:8]}T{run[9:11]}:{run[11:13]}:{run[13:15]}"
