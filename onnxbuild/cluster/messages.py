"""A job and how it ended, as JSON: content is named by its digests, and never part of a message."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.action import Action, ActionResult, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, StepError
from onnxbuild.core.graph import Step, StepAddress
from onnxbuild.core.params import from_json, key_of
from onnxbuild.core.ports import Done, Job
from onnxbuild.core.recipe import Location
from onnxbuild.core.step import Outcome, StepKind

_LOG_BYTES = 1 << 20  # of a log's end, which an answer carries


def job_text(job: Job) -> str:
    """Return a job as JSON; `read_job` reads it."""
    place = job.step.location
    return json.dumps(
        {
            "step": job.step.name,
            "kind": job.step.kind,
            "params": _whole(job.step.params),
            "code": list(job.step.code),
            "location": [place.path, place.line, place.column],
            "address": dataclasses.asdict(job.address),
            "action": job.action.to_json(),
            "inputs": {name: artifact.to_json() for name, artifact in job.inputs.items()},
            "outputs": dict(job.outputs),
        }
    )


def _whole(value: object) -> Any:
    """Parameters as JSON with what is local to a machine, too: keys there are made from it."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {key_of(each): _whole(getattr(value, each.name)) for each in fields}
    if isinstance(value, (list, tuple)):
        return [_whole(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _whole(each) for key, each in value.items()}
    return value


def read_job(text: str, catalog: Mapping[str, StepKind], log: Path, host: str) -> Job:
    """Return the job that `job_text` wrote.

    Args:
        text: The JSON.
        catalog: Step kinds by name.
        log: File of this machine that its output goes to.
        host: Name of this machine among those of its executor.

    Raises:
        StepError: This machine has no such step kind, or another version of it.
    """
    said = json.loads(text)
    name, kind = said["step"], catalog.get(said["kind"])
    if kind is None:
        raise _other_kind(name, f"there is no step kind '{said['kind']}'")
    try:
        params: object = from_json(kind.params, said["params"])
    except ValueError as error:
        raise _other_kind(name, f"the step kind '{kind.name}' is another one: {error}") from None
    return Job(
        Step(name, kind.name, {}, params, Location(*said["location"]), code=tuple(said["code"])),
        StepAddress(**said["address"]),
        Action(**said["action"]),
        {name: Artifact.from_json(each) for name, each in said["inputs"].items()},
        said["outputs"],
        log,
        host,
    )


def _other_kind(step: str, what: str) -> StepError:
    fix = "install the same onnxbuild and plug-ins on both machines"
    return StepError(what, where=step, fix=fix)


_NOTHING = ActionResult("", Observed(), {})


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a worker to a job.

    Attributes:
        missing: Content that it needs first; all else is empty then.
        result: What the job gave; without a key.
        error: Why it failed; None if it did not.
        log: End of its log.
        log_tail: Last lines of it, if it failed.
    """

    missing: tuple[Digest, ...] = ()
    result: ActionResult = _NOTHING
    error: BuildError | None = None
    log: str = ""
    log_tail: tuple[str, ...] = ()

    @staticmethod
    def of(done: Done) -> Answer:
        """Return what there is to say of a job that ended."""
        outcome = done.outcome or Outcome()
        result = ActionResult(
            key="",
            observed=done.observed,
            outputs=done.outputs,
            metrics=outcome.metrics,
            findings=outcome.findings,
            notes=outcome.notes,
            not_applicable=outcome.not_applicable,
            expense=done.expense,
        )
        return Answer((), result, done.error, _end_of(done.job.log), done.log_tail)

    def done(self, job: Job) -> Done:
        """Return how a job ended, for the engine."""
        found, expense = self.result, self.result.expense
        if self.error is not None:
            return Done(job, None, {}, Observed(), expense, self.error, self.log_tail)
        outcome = Outcome(found.metrics, found.findings, found.notes, found.not_applicable)
        return Done(job, outcome, found.outputs, found.observed, expense, None)

    def blobs(self) -> Iterator[Digest]:
        """Yield the content of all outputs."""
        for artifact in self.result.outputs.values():
            yield from (digest for _, digest in artifact.files)

    def text(self) -> str:
        """Return it as JSON; `read` reads it."""
        error = self.error
        said = None if error is None else [error.what, error.where, error.fix, error.exit_code]
        return json.dumps(
            {
                "missing": [[each.sha256, each.size_bytes] for each in self.missing],
                "result": self.result.to_json(),
                "error": said,
                "log": self.log,
                "log_tail": list(self.log_tail),
            }
        )

    @staticmethod
    def read(text: str) -> Answer:
        """Return what `text` wrote.

        Raises:
            ValueError, KeyError, TypeError: It is none.
        """
        said = json.loads(text)
        error = None
        if said["error"] is not None:
            what, where, fix, code = said["error"]
            error = StepError(what, where=where, fix=fix)
            error.exit_code = code
        return Answer(
            tuple(Digest(sha256, size) for sha256, size in said["missing"]),
            ActionResult.from_json(said["result"]),
            error,
            said["log"],
            tuple(said["log_tail"]),
        )


def failed(error: BuildError) -> Answer:
    """Return the answer for a job that was not begun."""
    return Answer(error=error)


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LOG_BYTES))
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
