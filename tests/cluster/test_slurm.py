"""Steps as batch jobs of a real Slurm on one node: the bytes of a local build, and what happens to jobs that are killed."""

import subprocess
import time

import pytest

from tests.attack.command import seen
from tests.cluster.clusters import begin
from tests.cluster.slurm_node import slurm
from tests.cluster.test_cluster import await_start, delivered, local, project  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def node(tmp_path_factory):
    with (
        slurm(tmp_path_factory.mktemp("slurm")) as variables,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def queued() -> list[str]:
    done = subprocess.run(
        ["squeue", "--noheader", "--format=%i"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def on_slurm(project, store, recipe="ready.yaml", executor="slurm:debug?cpus=1", more=()):  # noqa: F811
    return begin(project, recipe, "--store", str(store), "--executor", executor, *more)


def test_a_build_gives_the_bytes_of_a_local_one(project, local, tmp_path):  # noqa: F811
    run = seen(on_slurm(project, tmp_path / "store"))
    assert run.code == 0, run.texts
    assert len(run.of("step_finished")) > 3
    assert delivered(tmp_path / "store", "ready") == delivered(local, "ready")
    again = seen(on_slurm(project, tmp_path / "store"))
    assert (again.code, again.ran) == (0, frozenset())
    assert not list((tmp_path / "store/tmp").iterdir())


def test_a_batch_job_that_is_killed_runs_again(project, local, tmp_path):  # noqa: F811
    run = on_slurm(project, tmp_path / "store", "slow.yaml")
    await_start(run, 1)
    time.sleep(1.0)
    subprocess.run(["scancel", "--signal=KILL", "--full", *queued()], check=True)
    found = seen(run)
    assert found.code == 0, found.texts
    assert "was lost" in found.texts
    assert delivered(tmp_path / "store", "slow") == delivered(local, "slow")


def test_ctrl_c_cancels_what_runs(project, tmp_path):  # noqa: F811
    run = on_slurm(project, tmp_path / "store", "slow.yaml")
    await_start(run, 1)
    run.send_signal(2)
    assert seen(run).code == 130
    deadline = time.monotonic() + 10
    while queued():
        assert time.monotonic() < deadline, "its batch jobs go on"
        time.sleep(0.2)


def test_what_slurm_can_not_do_is_said(project, tmp_path):  # noqa: F811
    refused = seen(on_slurm(project, tmp_path / "store", executor="slurm:night"))
    assert refused.code == 2
    assert "sbatch failed" in refused.err
    assert "invalid partition" in refused.err
    gpu = (project / "ready.yaml").read_text().replace("name: ready", "name: gpus")
    (project / "gpus.yaml").write_text(gpu + "providers: {cpu: {}, cuda: {}}\n")
    refused = seen(on_slurm(project, tmp_path / "store", "gpus.yaml"))
    assert refused.code == 1
    assert refused.ran == frozenset()
    assert "it needs a GPU, and batch jobs ask for none" in refused.texts
