"""The worker's side, in this process: content from the remote store, and a project that differs."""

import shutil
import subprocess
from pathlib import Path

import onnx
import pytest

from onnxbuild.building.api import Request, build, graph_of
from onnxbuild.building.wiring import RunOptions, open_workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.cluster.messages import Answer, job_text
from onnxbuild.cluster.session import Session, WorkerPlace
from onnxbuild.core.ports import Job
from onnxbuild.engine.decide import make_action
from tests.cluster.test_cluster import READY
from tests.onnxkit.models import linear

pytestmark = pytest.mark.slow

STEP = "ready:fp32/validate"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "ready.yaml").write_text(READY)
    onnx.save(linear(), folder / "m.onnx")
    return folder


def job_of(project: Path, store: Path, name: str = STEP) -> Job:
    """A step whose inputs are built, and in a store."""
    request = Request((project / "ready.yaml",), store=str(store))
    result = build(request, RunOptions(wait_uploads=True))
    graph = graph_of(request)
    step, kind = graph.steps[name], CATALOG[graph.steps[name].kind]
    inputs = {
        each: result.report.results[ref.step].outputs[ref.output]
        for each, ref in step.inputs.items()
    }
    workspace = open_workspace(project, store)
    action = make_action(step, kind, inputs, workspace.fingerprints, workspace.host())
    workspace.close()
    log = store / "log"
    return Job(step, graph.addresses[name], action, inputs, kind.outputs, log, "far")


def answer_of(project: Path, store: Path, job: Job, *sent: Path) -> Answer:
    session = Session(WorkerPlace(project, store, 1, 1 << 33, "far"), 60.0, lambda _: None)
    try:
        answer = Answer.read(session.run(job_text(job)))
        if answer.missing and sent:
            for digest in answer.missing:
                path = sent[0] / "cas/sha256" / digest.sha256[:2] / digest.sha256
                session.take(digest, 0, path.read_bytes())
            answer = Answer.read(session.run(job_text(job)))
        return answer
    finally:
        session.stop()
        session.join()


def test_what_is_missing_is_asked_for_and_taken(project, tmp_path):
    job = job_of(project, tmp_path / "here")
    copy = shutil.copytree(project, tmp_path / "copy")
    asked = answer_of(copy, tmp_path / "there", job)
    assert {each.sha256 for each in asked.missing}
    found = answer_of(copy, tmp_path / "there", job, tmp_path / "here")
    assert (found.missing, found.error) == ((), None)
    assert found.result.outputs
    assert not list((tmp_path / "there/locks").glob("run-*"))


def test_a_project_that_differs_is_refused_before_the_step_runs(project, tmp_path):
    job = job_of(project, tmp_path / "here", "ready:import")
    copy = shutil.copytree(project, tmp_path / "copy")
    onnx.save(linear(rows=5), copy / "m.onnx")
    error = answer_of(copy, tmp_path / "there", job).error
    assert "on the worker far: it is not as here: file m.onnx" in error.what
    assert error.where == "ready:import"


def test_a_worker_fetches_its_inputs_from_the_remote(project, tmp_path, monkeypatch):
    pytest.importorskip("obstore")
    made = "genpkey -algorithm ed25519 -out key.pem"
    subprocess.run(["openssl", *made.split()], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setenv("ONNXBUILD_REMOTE", (tmp_path / "shared").as_uri())
    monkeypatch.setenv("ONNXBUILD_REMOTE_PUSH", "always")
    monkeypatch.setenv("ONNXBUILD_REMOTE_SIGN_KEY", str(tmp_path / "key.pem"))
    (tmp_path / "shared").mkdir()
    job = job_of(project, tmp_path / "here")
    copy = shutil.copytree(project, tmp_path / "copy")
    found = answer_of(copy, tmp_path / "there", job)
    assert (found.missing, found.error) == ((), None)
    assert found.result.outputs
