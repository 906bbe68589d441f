"""Write what CI reads of a run: JUnit XML, annotations, the job's summary; of one that was refused, too."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from onnxbuild.adapters import locate
from onnxbuild.adapters.clock import run_id
from onnxbuild.adapters.disk.atomic_files import output_error, store_error
from onnxbuild.building.api import BuildResult
from onnxbuild.building.outcome import run_result
from onnxbuild.ci.github import (
    Annotation,
    annotations_of_error,
    annotations_of_failures,
    annotations_of_remarks,
    workflow_command,
)
from onnxbuild.ci.job_summary import summary_of_error, summary_of_run
from onnxbuild.ci.recorder import Recorder
from onnxbuild.core.errors import EXIT_BUG, EXIT_INTERRUPTED, BuildError, StoreError
from onnxbuild.document.faults import Remark
from onnxbuild.output.error_record import error_record
from onnxbuild.project_folder import find_project

_CHECKOUT, _SUMMARY, _OUTPUT = "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"


class InterruptedRunError(BuildError):
    """The run was interrupted: by Ctrl-C, or by a signal that ends the process."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("interrupted; finished steps are kept")
        self.exit_code = exit_code


class BugError(BuildError):
    """onnxbuild met a bug in itself."""

    exit_code = EXIT_BUG


@dataclass(slots=True)
class CiOutputs:
    """Outputs that a run was asked to leave for CI.

    Attributes:
        recipes: The recipes that it builds, or folders of them, as typed.
        say: Prints a line for GitHub.
        junit: File for JUnit XML; None for none.
        summary: File for the summary in Markdown; None for none.
        github: Whether to write for GitHub.
        recorder: A sink for the run's events.
        started: When the run began, as JUnit writes it.
        has_result: Whether the run's result was written, as far as that was possible.
    """

    recipes: Sequence[str]
    say: Callable[[str], None]
    junit: Path | None = None
    summary: Path | None = None
    github: bool = False
    recorder: Recorder = field(default_factory=Recorder)
    started: str = field(default_factory=lambda: _stamp(run_id()))
    has_result: bool = False

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Remove the files of an earlier run; write whatever ends the run without a result, and pass it on.

        Raises:
            StoreError: A file of an earlier run can't be removed.
        """
        for path in (self.junit, self.summary):
            if path is not None:
                _remove(path)
        try:
            yield
        except BuildError as error:
            self.refuse(error)
            raise
        except KeyboardInterrupt:
            self.refuse(InterruptedRunError(EXIT_INTERRUPTED))
            raise
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else EXIT_INTERRUPTED
            self.refuse(InterruptedRunError(code))
            raise
        except OSError as error:
            self.refuse(store_error(error, error.filename or "the output"))
            raise
        except Exception as error:
            self.refuse(
                BugError(f"onnxbuild met a bug in itself: {type(error).__name__}: {error}")
            )
            raise

    def refuse(self, error: BuildError) -> None:
        """Write an error that ends the run without a result, or one of writing its result.

        Args:
            error: Why there is none. Files that can't be written are named in lines of their own.
        """
        text = summary_of_error(error_record(error))

        def write_junit(path: Path) -> None:
            from onnxbuild.ci.junit import junit_of_error

            _write(path, junit_of_error(self.recipes, error, self.started))

        writes: list[Callable[[], None]] = []
        if self.junit is not None and not self.has_result:
            writes.append(partial(write_junit, self.junit))
        if self.summary is not None and not self.has_result:
            writes.append(partial(_write, self.summary, _encoded(text)))
        if self.github:
            if not self.has_result:
                writes.append(partial(_append, _SUMMARY, text))
            writes.append(lambda: set_outputs({"exit-code": str(error.exit_code)}))
        self._say_refused(_tried(writes), error)
        self.annotate(annotations_of_error(error))

    def finish(self, result: BuildResult, end: str) -> None:
        """Write what a run gave. A file that can't be written keeps no other from being written.

        Args:
            end: The line that it ends with on a terminal.

        Raises:
            StoreError: A file can't be written.
        """

        def write_junit(path: Path) -> None:
            from onnxbuild.ci.junit import junit_of_run

            _write(path, junit_of_run(result.graph, result.report, self.recorder, self.started))

        writes: list[Callable[[], None]] = []
        if self.junit is not None:
            writes.append(partial(write_junit, self.junit))
        if self.github or self.summary is not None:
            found = run_result(result, self.recorder.logs)
            text = summary_of_run(found, end)
            if self.summary is not None:
                writes.append(partial(_write, self.summary, _encoded(text)))
            if self.github:
                self.annotate(annotations_of_failures(found["failures"]))
                outputs = {"exit-code": str(result.exit_code), "out": found["out"]}
                writes += [partial(_append, _SUMMARY, text), lambda: set_outputs(outputs)]
        refused = _tried(writes)
        self.has_result = True
        if refused:
            self._say_refused(refused[1:], refused[0])
            raise refused[0]

    def _say_refused(self, refused: Iterable[StoreError], error: BuildError) -> None:
        """Print the files that can't be written, without what an error says anyway."""
        for text in dict.fromkeys(map(str, refused)):
            if text != str(error):
                self.say(text)

    def annotate_remarks(self, remarks: Iterable[Remark]) -> None:
        """Write remarks on recipes as notices.

        Args:
            remarks: From `request.remarks_of`.
        """
        self.annotate(annotations_of_remarks(remarks))

    def annotate(self, annotations: Iterable[Annotation]) -> None:
        """Write annotations, where they are asked for."""
        if not self.github:
            return
        first = Path(self.recipes[0] if self.recipes else "")
        project = find_project(first / "recipe.yaml" if first.is_dir() else first)
        checkout = Path(locate.environment().get(_CHECKOUT) or Path.cwd())
        for each in annotations:
            self.say(workflow_command(each, project, checkout))


def set_outputs(values: Mapping[str, str]) -> None:
    """Set outputs of the step of a GitHub job; nothing elsewhere.

    Args:
        values: Name -> value; one of several lines is written between random marks, so that no value can end
            early and set another output.
    """
    lines = []
    for name, value in values.items():
        mark = f"onnxbuild-{secrets.token_hex(16)}"
        is_plain = "\n" not in value and "\r" not in value
        lines += [f"{name}={value}"] if is_plain else [f"{name}<<{mark}", value, mark]
    _append(_OUTPUT, "".join(f"{line}\n" for line in lines))


def _tried(writes: Iterable[Callable[[], None]]) -> list[StoreError]:
    """Write all that can be written; return why the rest can't be."""
    refused = []
    for write in writes:
        try:
            write()
        except StoreError as error:
            refused.append(error)
    return refused


def _append(variable: str, text: str) -> None:
    """Append to the file that a variable of GitHub's names."""
    name = locate.environment().get(variable)
    if not name:
        return
    try:
        with Path(name).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise output_error(error, Path(name)) from error


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _remove(path: Path) -> None:
    """Remove a file that an earlier run left; a link, a pipe or a terminal stays."""
    try:
        if path.is_file() and not path.is_symlink():
            path.unlink()
    except OSError as error:
        raise output_error(error, path) from error


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise output_error(error, path) from error


def _stamp(run: str) -> str:
    """YYYY-MM-DDTHH:MM:SS of a run's id."""
    return f"{run[:4]}-{run[4:6]}-{run[6:8]}T{run[9:11]}:{run[11:13]}:{run[13:15]}"
