"""Whole builds of a ready ONNX model by real commands: two at once, up to date, killed.

No step imports torch, so a step is cheap where it starts anew: `make test-portable` runs them on the portable path, too.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import onnx
import pytest

from tests.attack.command import kill, seen
from tests.attack.tiny import delivered
from tests.cli.conftest import Project
from tests.fork_servers import COLD, command
from tests.onnxkit.models import linear

pytestmark = pytest.mark.slow

RECIPE = """\
version: 1
name: tiny
model: {onnx: m.onnx}
quantization: {fp32: none}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""


def make(folder: Path) -> Project:
    made = Project(folder, patience_s=300)
    made.write("pyproject.toml", "")
    made.write("tiny.yaml", RECIPE)
    onnx.save(linear(), folder / "m.onnx")
    return made


def begin(project: Project) -> subprocess.Popen[str]:
    """`onnxbuild run tiny.yaml --json`, not waited for."""
    return subprocess.Popen(
        command("run", "tiny.yaml", "--json", python=sys.executable),
        cwd=project.folder,
        env={**os.environ, **project.cache},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project that was built by two runs at once, and what each of them reported."""
    project = make(tmp_path_factory.mktemp("ready") / "project")
    return project, [seen(each) for each in [begin(project) for _ in range(2)]]


def test_two_runs_at_once_build_each_step_once(built):
    _, runs = built
    assert [(each.code, each.err) for each in runs] == [(0, "")] * 2
    ran = Counter(event["step"] for each in runs for event in each.of("step_finished"))
    assert len(ran) == 8
    assert set(ran.values()) == {1}


def test_the_next_run_has_nothing_to_do_and_an_edit_runs_what_it_changes(built, tmp_path):
    project = Project(shutil.copytree(built[0].folder, tmp_path / "project", symlinks=True), 300)
    again = project("run", "tiny.yaml")
    assert (again.code, again.ran) == (0, [])
    assert "nothing to do" in project("run", "tiny.yaml").out
    project.edit("tiny.yaml", "min_samples: 3", "min_samples: 4")
    again = project("run", "tiny.yaml")
    assert (again.code, again.ran) == (0, ["benchmark"]), again.out + again.err


def test_after_a_kill_the_next_run_delivers_what_an_undisturbed_build_does(
    built, tmp_path, monkeypatch
):
    monkeypatch.setenv(COLD, "1")  # all that it starts is its own
    clean = delivered(built[0].folder / "artifacts")
    project = make(tmp_path / "project")
    store = project.folder / "artifacts"
    process = begin(project)
    while process.poll() is None and "step_finished" not in _events(store):
        time.sleep(0.002)
    assert kill(process).code == -signal.SIGKILL
    assert delivered(store).items() <= clean.items(), "a half-written file"
    again = project("run", "tiny.yaml")
    assert again.code == 0, again.out + again.err
    assert len(again.ran) < 8, "what had ended ran again"
    assert delivered(store) == clean
    assert [path for path in (store / "tmp").iterdir() if path.is_dir()] == []
    assert list((store / "locks").glob("run-*")) == []


def _events(store: Path) -> str:
    return "".join(path.read_text() for path in store.glob("runs/*/events.jsonl"))
