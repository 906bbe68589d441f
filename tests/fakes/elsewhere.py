"""Fakes of what comes next: a store behind a store, and an executor whose steps run on another machine."""

import json
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.disk_views import DiskViews
from onnxbuild.building.wiring import Workspace, open_workspace
from onnxbuild.core.action import Action, ActionResult, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import Step, StepAddress
from onnxbuild.core.params import from_json
from onnxbuild.core.ports import Done, Executor, HeldLock, Host, Job
from onnxbuild.core.step import Outcome, StepKind
from tests.fakes.world import HERE, MemoryStore


class StoreBehind:
    """A store on this machine in front of one that others share; implements Store.

    Args:
        near: What is on this machine.
        far: What is shared.
        on_call: Called before each transfer.
    """

    def __init__(
        self, near: DiskStore, far: MemoryStore, on_call: Callable[[], None] = lambda: None
    ) -> None:
        self._near, self._far, self._on_call = near, far, on_call

    def expect(self, keys: Collection[str]) -> None:
        pass

    def lookup(self, key: str) -> tuple[ActionResult, ...]:
        if found := self._near.lookup(key):
            return found
        self._on_call()
        for result in reversed(self._far.lookup(key)):
            self._near.record(result)
        return self._near.lookup(key)

    def record(self, result: ActionResult) -> None:
        self._near.record(result)
        for artifact in result.outputs.values():
            self.push(artifact)
        self._on_call()
        self._far.record(result)

    def push(self, artifact: Artifact) -> None:
        """Upload what the far store lacks."""
        for path, blob in self._near.paths(artifact).items():
            if dict(artifact.files)[path].sha256 not in self._far.blobs:
                self._on_call()
                self._far.put(blob.read_bytes())

    def ingest(self, folder: Path, kind: str) -> Artifact:
        return self._near.ingest(folder, kind)

    def faults(self, artifact: Artifact, *, by_content: bool = False) -> tuple[str, ...]:
        found = []
        for path, digest in artifact.files:
            faults = self._near.faults(Artifact("", ((path, digest),)), by_content=by_content)
            is_far = not self._far.faults(Artifact("", ((path, digest),)))
            found += [] if is_far else faults
        return tuple(found)

    def paths(self, artifact: Artifact) -> Mapping[str, Path]:
        for path, digest in artifact.files:
            if self._near.faults(Artifact("", ((path, digest),))):
                self._on_call()
                self._fetch(digest)
        return self._near.paths(artifact)

    def _fetch(self, digest: Digest) -> None:
        content = self._far.blobs.get(digest.sha256)
        if content is None or Digest.of(content) != digest:
            return  # whoever reads it finds that it is not there
        folder = Path(tempfile.mkdtemp(dir=self._near.root / "tmp"))
        (folder / "blob").write_bytes(content)
        self._near.ingest(folder, "")
        shutil.rmtree(folder)

    def discard(self, digest: Digest) -> None:
        self._near.discard(digest)

    def try_lock(self, key: str) -> HeldLock | None:
        return self._near.try_lock(key)


def open_behind(
    project: Path, root: Path, far: MemoryStore, on_call: Callable[[], None] = lambda: None
) -> Workspace:
    """A project with a store behind its own."""
    workspace = open_workspace(project, root)
    store = StoreBehind(workspace.disk, far, on_call)
    return replace(workspace, store=store, views=DiskViews(workspace.root, store, workspace.stats))


class Elsewhere:
    """Sends jobs to another machine as JSON, with digests in place of content; implements Executor.

    The other machine has its own copy of the project and its own store before the shared one.

    Args:
        there: The other machine's workspace.
        inner: What runs steps there.
        catalog: Step kinds by name.
        on_call: Called before each message.
    """

    def __init__(
        self,
        there: Workspace,
        inner: Executor,
        catalog: Mapping[str, StepKind],
        on_call: Callable[[], None] = lambda: None,
    ) -> None:
        self._there, self._inner, self._catalog, self._on_call = there, inner, catalog, on_call
        self._jobs: dict[str, Job] = {}
        self.sent: list[str] = []

    def hosts(self) -> Sequence[Host]:
        return self._inner.hosts()

    def expect(self) -> None:
        self._inner.expect()

    def start(self, job: Job) -> None:
        self._on_call()
        self._jobs[job.step.name] = job
        message = {
            "step": job.step.name,
            "kind": job.step.kind,
            "params": job.step.params_json,
            "action": job.action.to_json(),
            "inputs": {name: artifact.to_json() for name, artifact in job.inputs.items()},
            "outputs": dict(job.outputs),
            "host": job.host,
        }
        self.sent.append(json.dumps(message))
        self._inner.start(self._received(json.loads(self.sent[-1])))

    def wait(self, timeout_s: float) -> list[Done]:
        self._on_call()
        answers = [json.dumps(self._answer(done)) for done in self._inner.wait(timeout_s)]
        return [self._done(json.loads(answer)) for answer in answers]

    def close(self) -> None:
        self._inner.close()

    # --- there --------------------------------------------------------------------------------------

    def _received(self, message: Mapping[str, Any]) -> Job:
        params = from_json(self._catalog[message["kind"]].params, message["params"])
        return Job(
            Step(message["step"], message["kind"], {}, params, HERE),
            StepAddress("elsewhere", message["step"]),
            Action(**message["action"]),
            {name: Artifact.from_json(each) for name, each in message["inputs"].items()},
            message["outputs"],
            self._there.root / "elsewhere.log",
            message["host"],
        )

    def _answer(self, done: Done) -> dict[str, Any]:
        store = self._there.store
        assert isinstance(store, StoreBehind)
        for artifact in done.outputs.values():
            store.push(artifact)
        log = done.job.log.read_text() if done.job.log.exists() else ""
        error, outcome = done.error, done.outcome or Outcome()
        result = ActionResult(
            "", done.observed, done.outputs, outcome.metrics, outcome.findings, outcome.notes,
            outcome.not_applicable, done.expense,
        )  # fmt: skip
        said = None if error is None else [error.what, error.where, error.fix, error.exit_code]
        answer = {"step": done.job.step.name, "log": log, "error": said}
        return answer | {"result": result.to_json()}

    # --- here ---------------------------------------------------------------------------------------

    def _done(self, answer: Mapping[str, Any]) -> Done:
        job = self._jobs.pop(answer["step"])
        job.log.parent.mkdir(parents=True, exist_ok=True)
        job.log.write_text(answer["log"])
        found = ActionResult.from_json(answer["result"])
        if answer["error"] is not None:
            what, where, fix, code = answer["error"]
            error = StepError(what, where=where, fix=fix)
            error.exit_code = code
            return Done(job, None, {}, Observed(), found.expense, error)
        outcome = Outcome(found.metrics, found.findings, found.notes, found.not_applicable)
        return Done(job, outcome, found.outputs, found.observed, found.expense, None)
