"""kill -9 of workers and of the driver at random moments: the bytes of a local build, and nothing finished is lost.

`ONNXBUILD_KILLS=20 ONNXBUILD_SEED=7 pytest tests/cluster/test_random_kills.py` tries 20 moments of that seed.
"""

import json
import os
import random
import signal
import time

import pytest

from tests.attack.command import seen
from tests.cluster.clusters import Cluster
from tests.cluster.test_cluster import delivered, local, project  # noqa: F401 - fixtures

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("ONNXBUILD_KILLS", "4"))
SEED = int(os.environ.get("ONNXBUILD_SEED") or random.randrange(10**6))
WORKERS = 2


@pytest.fixture(scope="module")
def cluster(project, tmp_path_factory):  # noqa: F811
    with Cluster(project, tmp_path_factory.mktemp("kills")) as started:
        for number in range(WORKERS):
            started.add(f"first{number}")
        yield started


@pytest.fixture(scope="module")
def undisturbed_s(cluster, tmp_path_factory):
    """Seconds that a build takes if nothing happens."""
    began_s = time.monotonic()
    run = cluster.run("slow.yaml", "--store", str(tmp_path_factory.mktemp("undisturbed")))
    assert run.code == 0, run.texts
    return time.monotonic() - began_s


@pytest.mark.parametrize("number", range(KILLS))
def test_a_kill_at_a_random_moment_loses_nothing(cluster, local, tmp_path, undisturbed_s, number):  # noqa: F811
    dice = random.Random(f"{SEED} {number}")
    moment_s = dice.uniform(0, undisturbed_s)
    victim = dice.choice(["driver", "worker", "worker"])
    said = f"seed {SEED}, kill {number}: a {victim} after {moment_s:.2f} s"
    store = tmp_path / "store"
    run = cluster.begin("slow.yaml", "--store", str(store))
    time.sleep(moment_s)
    if victim == "worker":
        cluster.kill(dice.choice(sorted(cluster.workers)))
        cluster.add(f"next{number}")
    elif run.poll() is None:
        run.send_signal(signal.SIGKILL)
        lines, _ = run.communicate()
        finished = {
            json.loads(line)["step"] for line in lines.splitlines() if "step_finished" in line
        }
        run = cluster.begin("slow.yaml", "--store", str(store))
        again = seen(run)
        assert again.code == 0, f"{said}\n{again.texts}"
        assert {each["step"] for each in again.of("step_finished")}.isdisjoint(finished), said
        assert delivered(store, "slow") == delivered(local, "slow"), said
        return
    found = seen(run)
    assert found.code == 0, f"{said}\n{found.texts}"
    assert delivered(store, "slow") == delivered(local, "slow"), said
