"""The driver's side, with a cluster that is a thread: refusals, losses, content that did not arrive."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from onnxbuild import __version__
from onnxbuild.adapters import machine
from onnxbuild.building.api import Request, graph_of
from onnxbuild.building.wiring import open_workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.cluster import executor as room
from onnxbuild.cluster import worker as remote
from onnxbuild.cluster.executor import DaskExecutor
from onnxbuild.cluster.messages import Answer, failed, job_text, read_job
from onnxbuild.core.action import ActionResult, Expense, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import StepError, UsageError
from onnxbuild.core.ports import Done, Job
from onnxbuild.engine.decide import make_action
from tests.cli.conftest import cheap  # noqa: F401 - a fixture

CONTENT = b"what a step made"
REPORT = Artifact("report", (("report.json", Digest.of(CONTENT)),))


class FakeClient:
    """As much of Dask's client as the executor uses; workers answer in threads.

    Attributes:
        workers: Address -> what it says of itself.
        asked: Addresses that steps were sent to.
        deaths: How many of the next steps take their worker with them.
        bytes_given: What workers give for any digest.
    """

    def __init__(self, *names: str, **said: object) -> None:
        self.status = "running"
        self.scheduler = SimpleNamespace(address="tcp://127.0.0.1:8786", identity=self._identity)
        self.said = {
            "onnxbuild": __version__,
            "python": machine.python_build(),
            "packages": {},
            "facts": machine.host_class(),
            "drivers": machine.driver_facts(),
            "jobs": 1,
            "memory_bytes": 1 << 30,
            "tags": ["avx2"],
            **said,
        }
        self.workers = {f"tcp://{name}": {"name": name, "resources": {}} for name in names}
        self.asked: list[str] = []
        self.deaths = 0
        self.bytes_given = CONTENT
        self.answer = Answer(
            result=ActionResult("", Observed(), {"report": REPORT}, expense=Expense(1.0, 1.0, 1))
        )

    def _identity(self, n_workers: int) -> dict[str, object]:
        assert n_workers == -1
        return {"workers": dict(self.workers)}

    def sync(self, function, **options):
        return function(**options)

    def run(self, function, *arguments, workers, on_error="raise"):
        if function is remote.describe:
            return {each: json.dumps(self.said) for each in workers}
        if function is remote.give:
            return {workers[0]: self.bytes_given}
        return dict.fromkeys(workers, "")

    def submit(self, function, run, timeout_s, text, *, key, workers, resources, pure):
        assert function is remote.run_step
        self.asked.append(workers[0])
        future: Future[str] = Future()
        if self.deaths:
            self.deaths -= 1
            del self.workers[workers[0]]
        else:
            future.set_result(self.answer.text())
        return future

    def close(self, timeout):
        self.status = "closed"


@pytest.fixture
def world(cheap, tmp_path, monkeypatch):  # noqa: F811
    """(workspace, a job of its project); looks at workers are quick."""
    monkeypatch.setattr(room, "_LOOK_S", 0.01)
    monkeypatch.setattr(room, "_GRACE_S", 0.5)
    monkeypatch.chdir(cheap.folder)
    graph = graph_of(Request((Path("tiny.yaml"),)))
    workspace = open_workspace(cheap.folder, tmp_path / "store")
    step = graph.steps["tiny:fp32/check"]
    kind = CATALOG[step.kind]
    inputs = {name: Artifact("onnx-model", ()) for name in step.inputs}
    action = make_action(step, kind, inputs, workspace.fingerprints, workspace.host())
    log = tmp_path / "logs/check.log"
    yield (
        workspace,
        Job(step, graph.addresses[step.name], action, inputs, kind.outputs, log, "one"),
    )
    workspace.close()


@contextmanager
def running(client: FakeClient, workspace) -> Iterator[tuple[DaskExecutor, list[str]]]:
    said: list[str] = []
    executor = DaskExecutor(client, workspace, timeout_s=9.0, say=said.append)
    try:
        executor.await_workers(1, 5.0)
        yield executor, said
    finally:
        executor.close()


def done(client: FakeClient, world) -> tuple[Done, list[str]]:
    workspace, job = world
    with running(client, workspace) as (executor, said):
        executor.start(job)
        for _ in range(100):
            if ended := executor.wait(0.1):
                return ended[0], said
    raise AssertionError("the job did not end")


def test_a_result_comes_with_its_content_and_its_log(world):
    client = FakeClient("one", "two")
    client.answer = Answer(result=client.answer.result, log="hello")
    ended, _ = done(client, world)
    assert (ended.error, ended.expense.wall_s) == (None, 1.0)
    (blob,) = world[0].store.paths(ended.outputs["report"]).values()
    assert blob.read_bytes() == CONTENT
    assert world[1].log.read_text() == "hello"
    assert client.asked == ["tcp://one"]
    assert not list((world[0].root / "locks").glob("run-*"))


def test_a_step_of_a_lost_worker_runs_on_another(world):
    client = FakeClient("one", "two")
    client.deaths = 1
    ended, said = done(client, world)
    assert ended.error is None
    assert client.asked == ["tcp://one", "tcp://two"]
    assert "the worker one is gone" in said


def test_four_lost_workers_are_enough(world):
    client = FakeClient("one", "two", "three", "four", "five")
    client.deaths = 9
    ended, _ = done(client, world)
    assert "the workers that ran it were lost: one, five, four, three" in ended.error.what
    assert len(client.asked) == 4


def test_where_no_other_worker_is_left_the_lost_one_is_named(world):
    client = FakeClient("one")
    client.deaths = 1
    ended, _ = done(client, world)
    assert ended.error.what == "the worker one was lost, and no other one can run the step"


def test_content_that_is_not_what_was_said_is_not_taken(world):
    client = FakeClient("one")
    client.bytes_given = b"something else!!"
    ended, _ = done(client, world)
    assert "gave other bytes than it said" in ended.error.what
    assert world[0].store.faults(REPORT)


def test_a_result_that_was_made_from_other_files_is_refused(world):
    client = FakeClient("one")
    seen = Observed(data={"models/helper.py": "0" * 64})
    client.answer = Answer(result=ActionResult("", seen, {"report": REPORT}))
    ended, _ = done(client, world)
    assert "the project on the worker one is not as it is here: file models/helper.py" in (
        ended.error.what
    )


def test_an_error_there_is_an_error_here_with_its_exit_code(world):
    error = StepError("no", where="there", fix="think")
    error.exit_code = 5
    client = FakeClient("one")
    client.answer = failed(error)
    ended, _ = done(client, world)
    assert (ended.error.what, ended.error.where, ended.error.fix) == ("no", "there", "think")
    assert ended.error.exit_code == 5


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"onnxbuild": "0.0"}, f"it has onnxbuild 0.0, here is {__version__}"),
        ({"python": "cpython-39"}, "it has Python cpython-39, here is"),
        ({"packages": {"numpy": "0.1"}}, "it has numpy 0.1, here is"),
    ],
)
def test_a_worker_of_other_versions_is_refused_by_name(world, said, why):
    with pytest.raises(UsageError) as caught, running(FakeClient("one", **said), world[0]):
        pass
    assert f"the worker one is refused: {why}" in caught.value.what


def test_the_parameters_of_all_recipes_survive_a_message(world):
    project = Path(__file__).parents[2]
    _, job = world
    for recipe in ("digits", "minilm_folder", "openvino"):
        graph = graph_of(Request((project / f"recipes/{recipe}.yaml",)))
        for step in graph.steps.values():
            sent = Job(step, graph.addresses[step.name], job.action, {}, {}, job.log, "one")
            found = read_job(job_text(sent), CATALOG, job.log, "two")
            assert found.step.params == step.params
            assert (found.step.code, found.step.location) == (step.code, step.location)
            assert (found.address, found.action, found.host) == (sent.address, sent.action, "two")


def test_a_step_kind_that_is_not_there_is_an_error(world):
    text = json.loads(job_text(world[1])) | {"kind": "nowhere"}
    with pytest.raises(StepError, match="there is no step kind 'nowhere'"):
        read_job(json.dumps(text), CATALOG, world[1].log, "two")


@pytest.mark.parametrize(
    ("arguments", "setting", "where"),
    [(("--executor", "dask:/b:1"), "", ""), ((), 'executor = "dask:/b:1"', "pyproject.toml")],
)
def test_a_slip_in_the_executor_is_said_wherever_it_is_written(cheap, arguments, setting, where):  # noqa: F811
    cheap.write("pyproject.toml", f"[tool.onnxbuild]\n{setting}\n")
    found = cheap("run", "tiny.yaml", *arguments)
    assert found.code == 2
    assert f"{where}: there is no executor 'dask:/b:1'".removeprefix(": ") in found.err
    assert "--executor dask://b:1" in found.err


def test_nothing_runs_after_it_is_closed(world):
    with running(FakeClient("one"), world[0]) as (executor, _):
        watcher = executor._watcher
    watcher.join(5)
    assert not watcher.is_alive()
    assert threading.active_count() < 50
