"""Whole builds by real commands on a real cluster: the bytes of a local build, whatever happens to workers."""

import json
import signal
import subprocess
import time
from pathlib import Path

import onnx
import psutil
import pytest

from tests.attack.command import seen
from tests.cluster.clusters import Cluster, begin
from tests.onnxkit.models import linear

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

READY = """\
version: 1
name: ready
model: {onnx: m.onnx}
quantization: {fp32: none}
benchmark: {measure: false}
"""
SLOW = """\
version: 1
name: slow
model: {entrypoint: model.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 4]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
quantization: {fp32: none}
benchmark: {measure: false}
export: {exporter: torchscript}
"""
MODEL = """\
import time

import torch


def load():
    time.sleep(3)
    torch.manual_seed(0)
    return torch.nn.Linear(4, 2)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster") / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "ready.yaml").write_text(READY)
    (folder / "slow.yaml").write_text(SLOW)
    (folder / "model.py").write_text(MODEL)
    onnx.save(linear(), folder / "m.onnx")
    return folder


@pytest.fixture(scope="module")
def local(project):
    """Store of a local build of both recipes."""
    for recipe in ("ready.yaml", "slow.yaml"):
        assert seen(begin(project, recipe, "--store", "../local")).code == 0
    return project.parent / "local"


@pytest.fixture
def cluster(project, tmp_path):
    with Cluster(project, tmp_path) as started:
        yield started


def delivered(store: Path, recipe: str) -> dict[str, bytes]:
    folder = store / "out" / recipe
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def await_start(run: subprocess.Popen[str], count: int) -> list[str]:
    """Read events until so many steps have started."""
    lines: list[str] = []
    while sum("step_started" in line for line in lines) < count:
        line = run.stdout.readline()
        assert line, run.stderr.read()
        lines.append(line)
    return lines


def test_a_cluster_gives_the_bytes_of_a_local_build(cluster, local, tmp_path):
    cluster.add("one")
    cluster.add("two")
    for recipe in ("ready", "slow"):
        store = tmp_path / "store"
        run = cluster.run(f"{recipe}.yaml", "--store", str(store))
        assert run.code == 0, run.texts
        assert len(run.of("step_finished")) > 3
        assert delivered(store, recipe) == delivered(local, recipe)
    again = cluster.run("ready.yaml", "--store", str(store))
    assert (again.code, again.ran) == (0, frozenset())
    blobs = [len(list((tmp_path / f"{each}-store/cas").rglob("*"))) for each in ("one", "two")]
    assert min(blobs) > 5, "both have worked"


def test_workers_of_the_runs_own_need_no_scheduler(project, local, tmp_path):
    store = tmp_path / "store"
    run = begin(project, "ready.yaml", "--store", str(store), "--executor", "dask:local?workers=2")
    assert seen(run).code == 0
    assert delivered(store, "ready") == delivered(local, "ready")


@pytest.mark.parametrize("moment_s", [0.1, 1.5, 4.0])
def test_a_worker_that_is_killed_loses_nothing(cluster, local, tmp_path, moment_s):
    cluster.add("one")
    cluster.add("two")
    store = tmp_path / "store"
    run = cluster.begin("slow.yaml", "--store", str(store))
    await_start(run, 2)  # one on each
    time.sleep(moment_s)
    cluster.kill("one")
    found = seen(run)
    assert found.code == 0, found.texts
    assert "the worker one is gone" in found.texts
    assert delivered(store, "slow") == delivered(local, "slow")


def test_where_all_workers_are_killed_a_new_one_goes_on(cluster, local, tmp_path):
    cluster.add("one")
    store = tmp_path / "store"
    run = cluster.begin("slow.yaml", "--store", str(store))
    await_start(run, 1)
    time.sleep(1.0)
    cluster.kill("one")
    cluster.add("two")
    assert seen(run).code == 0
    assert delivered(store, "slow") == delivered(local, "slow")


def test_a_driver_that_is_killed_goes_on_where_it_was(cluster, local, tmp_path):
    cluster.add("one")
    store = tmp_path / "store"
    run = cluster.begin("slow.yaml", "--store", str(store))
    lines = await_start(run, 3)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    finished = {json.loads(line)["step"] for line in lines if "step_finished" in line}
    assert finished
    found = cluster.run("slow.yaml", "--store", str(store))
    assert found.code == 0, found.texts
    assert {event["step"] for event in found.of("step_finished")}.isdisjoint(finished)
    assert delivered(store, "slow") == delivered(local, "slow")


def test_a_step_for_a_gpu_goes_to_a_worker_that_has_one_or_nowhere(cluster, project, tmp_path):
    text = READY.replace("name: ready", "name: gpu") + "providers: {cpu: {}, cuda: {}}\n"
    (project / "gpu.yaml").write_text(text)
    cluster.add("plain")
    store = tmp_path / "store"
    refused = cluster.run("gpu.yaml", "--store", str(store))
    assert refused.code == 1
    assert refused.ran == frozenset(), "nothing is built for what can't be finished"
    assert "it needs the resource GPU, and no worker has it" in refused.texts
    assert f"onnxbuild worker tcp://{cluster.address} --tag gpu" in refused.texts
    cluster.add("tagged", "--tag", "gpu")
    found = cluster.run("gpu.yaml", "--store", str(store))
    assert "GPU" not in found.texts
    assert "provider-cuda" in found.ran


def test_a_worker_whose_project_is_another_is_named(cluster, tmp_path):
    (cluster.copy("other") / "model.py").write_text(MODEL.replace("(4, 2)", "(4, 2, bias=False)"))
    cluster.add("other")
    found = cluster.run("slow.yaml", "--store", str(tmp_path / "store"))
    assert found.code == 1
    assert "the project on the worker other is not as it is here: source model.py" in found.texts


def test_a_step_that_fails_there_fails_here_with_its_last_lines(cluster, project, tmp_path):
    (project / "broken.yaml").write_text(SLOW.replace("model.py", "broken.py"))
    (project / "broken.py").write_text(
        "def load():\n    print('hello')\n    raise ValueError('no')\n"
    )
    cluster.add("one")
    store = tmp_path / "store"
    found = cluster.run("broken.yaml", "--store", str(store))
    assert found.code == 1
    assert "ValueError: no" in found.texts
    logs = "".join(path.read_text() for path in (store / "runs").rglob("*.log"))
    assert "hello" in logs


def test_no_scheduler_and_no_worker_are_said(cluster, project, tmp_path):
    store = str(tmp_path / "store")
    found = cluster.run("ready.yaml", "--store", store)
    assert found.code == 2
    assert "has no workers" in found.err
    gone = seen(begin(project, "ready.yaml", "--store", store, "--executor", "dask://127.0.0.1:9"))
    assert gone.code == 2
    assert "the scheduler tcp://127.0.0.1:9 gives no answer" in gone.err


def test_what_is_interrupted_ends_there_too_and_nobody_listens_beyond_loopback(
    cluster, local, tmp_path
):
    cluster.add("one")
    worker = psutil.Process(cluster.workers["one"].pid)
    listening = [each for each in worker.net_connections() if each.status == psutil.CONN_LISTEN]
    assert {each.laddr.ip for each in listening} == {"127.0.0.1"}
    store = tmp_path / "store"
    run = cluster.begin("slow.yaml", "--store", str(store))
    await_start(run, 1)
    time.sleep(4.0)
    run.send_signal(signal.SIGINT)
    assert seen(run).code == 130
    deadline = time.monotonic() + 10
    while worker.children(recursive=True):
        assert time.monotonic() < deadline, "its steps go on"
        time.sleep(0.1)
    assert cluster.run("slow.yaml", "--store", str(store)).code == 0
    assert delivered(store, "slow") == delivered(local, "slow")


def test_a_worker_ends_with_its_scheduler_and_leaves_nothing(cluster):
    cluster.add("one")
    cluster._scheduler.terminate()
    assert cluster.workers["one"].wait(30) == 1
    assert "is gone" in (cluster.folder / "one.log").read_text()
    assert not list((cluster.folder / "one-store").glob("locks/run-*"))
