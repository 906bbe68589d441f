"""Environments made from lists by the real venv and pip, from wheels next to the list."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.toolchain.environment_gc import collect_environments, hold, note_use
from onnxbuild.adapters.toolchain.virtual_environments import made_environments, make_environment
from onnxbuild.core.errors import StepError
from tests.environments import INSTALLED, write_wheel

pytestmark = pytest.mark.slow

DAY_S = 24 * 3600.0
LIST = "--no-index\n--find-links wheels\nshared==1.0\n"


@pytest.fixture
def listed(tmp_path, monkeypatch):
    monkeypatch.setenv("ONNXBUILD_CACHE", str(tmp_path / "cache"))
    write_wheel(tmp_path / "wheels", "shared", content=INSTALLED)
    (tmp_path / "list.txt").write_text(LIST)
    return tmp_path / "list.txt"


def interpreter(tmp_path):
    return str(tmp_path / "cache" / "environments" / "any" / "bin" / "python")


def left(tmp_path):
    return [path.name for path in (tmp_path / "cache" / "environments").iterdir() if path.is_dir()]


def test_it_is_made_once_reported_and_listed(tmp_path, listed):
    said: list[str] = []
    steps: list[tuple[int, int, str]] = []
    make_environment(
        str(listed), interpreter(tmp_path), said.append, progress=lambda *step: steps.append(step)
    )
    assert steps == [(1, 2, "installing"), (2, 2, "")]
    assert said[0] == f"making the environment of {listed}: 1 packages, with pip"
    assert said[1].startswith(f"made the environment of {listed} in ")
    code = "import onnxruntime; print(onnxruntime.__file__)"
    done = subprocess.run(
        [interpreter(tmp_path), "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(INSTALLED)
    make_environment(str(listed), interpreter(tmp_path), said.append)
    assert len(said) == 2
    (made,) = made_environments()
    assert made.requirements == str(listed)
    assert made.size_bytes > 1 << 20
    assert left(tmp_path) == ["any"]


def test_one_that_nothing_used_for_long_goes_and_one_in_use_stays(tmp_path, listed):
    make_environment(str(listed), interpreter(tmp_path), lambda _: None)
    folder = tmp_path / "cache" / "environments" / "any"

    def collect(keep_days=30):
        found = [
            collect_environments(keep_s=keep_days * DAY_S, dry_run=dry) for dry in (True, False)
        ]
        assert [each.kept for each in found[0]] == [each.kept for each in found[1]]
        return [each.kept or each.made for each in found[1]]

    def age(days):
        then_s = time.time() - days * DAY_S
        for path in (folder, f"{folder}.lock"):
            os.utime(path, (then_s, then_s))

    assert collect(keep_days=1) == ["recent"]
    age(31)
    lock = hold(str(folder))
    age(31)
    assert collect() == ["busy"]
    lock.release()
    note_use([str(folder)])
    assert collect() == ["recent"]
    age(29)
    assert collect() == ["recent"]
    age(31)
    (gone,) = collect()
    assert (gone.folder, gone.requirements) == (str(folder), str(listed))
    assert list(folder.parent.iterdir()) == []


def test_a_distribution_that_is_not_there_is_reported_with_its_line(tmp_path, listed):
    listed.write_text(f"{LIST}gone_for_good==3.1\n")
    with pytest.raises(StepError) as caught:
        make_environment(str(listed), interpreter(tmp_path), lambda _: None)
    assert caught.value.where == f"{listed}:4"
    assert caught.value.what == (
        "pip can't install the list: No matching distribution found for gone_for_good==3.1"
    )
    assert caught.value.fix == "`pip index versions gone-for-good` lists the available versions"
    assert left(tmp_path) == []


def test_a_kill_leaves_nothing_that_is_half_made(tmp_path, listed):
    code = (
        "import sys; from onnxbuild.adapters.toolchain.virtual_environments import make_environment\n"
        "make_environment(sys.argv[1], sys.argv[2], print)"
    )
    python = interpreter(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(listed), python], start_new_session=True
    )
    folder = Path(python).parents[2]
    deadline = time.monotonic() + 60
    while not list(folder.glob("any.*.tmp/bin/python")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not Path(python).exists()
    make_environment(str(listed), python, lambda _: None)
    assert left(tmp_path) == ["any"]
