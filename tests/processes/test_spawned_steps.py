"""Steps in processes that are started anew: their end, and the end of a run that is stopped."""

import pytest

from onnxbuild.adapters.portable import VARIABLE
from onnxbuild.processes.spawned_steps import EXPENSE_FILE, _expense
from tests.processes.test_executor import World, is_gone

HANGS = """\
import os, subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path({path!r}).write_text(f"{{os.getpid()}} {{child.pid}}")
time.sleep(600)
"""


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    made = World(tmp_path)
    yield made
    made.executor.close()


@pytest.mark.slow
def test_a_run_that_is_stopped_ends_every_step_with_what_it_started(world):
    for name in ("a", "b"):
        world.start(HANGS.format(path=str(world.reported / name)))
    pids = [int(pid) for name in ("a", "b") for pid in world.wait_for(name).split()]
    world.executor.close()
    assert [is_gone(pid) for pid in pids] == [True] * 4
    assert not (world.store_root / "tmp/run").exists()


@pytest.mark.parametrize("content", ["[]", "["])
def test_an_expense_that_is_none_counts_nothing(tmp_path, content):
    (tmp_path / EXPENSE_FILE).write_text(content)
    assert _expense(tmp_path) == {"cpu_s": 0.0, "peak_bytes": 0}


@pytest.mark.slow
def test_after_a_timeout_the_other_steps_go_on(world):
    world.executor._timeout_s = 4
    world.start(HANGS.format(path=str(world.reported / "a")))
    done = world.wait()
    assert done.error is not None
    assert "stopped: it ran longer than 4 s" in done.error.what
    world.executor._timeout_s = 60
    assert world.run("import torch\nreturn torch.nn.Linear(4, 2)").error is None
