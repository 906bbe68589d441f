"""Locks of SQLite, for systems without flock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from onnxbuild.adapters.disk import locks
from onnxbuild.adapters.portable import VARIABLE

HOLD = """\
import os, sys, time
from pathlib import Path
from onnxbuild.adapters.disk import locks
held = locks.wait_lock(Path(sys.argv[1]), shared=sys.argv[2] == "shared")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _portable(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")


@pytest.fixture
def hold(tmp_path):
    """Hold the lock in another process."""
    started = []

    def start(kind):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, tmp_path / "lock", kind], stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("theirs", "shared", "exclusive"), [("shared", True, False), ("exclusive", False, False)]
)
def test_many_may_share_and_one_alone_keeps_all_others_out(
    tmp_path, hold, theirs, shared, exclusive
):
    hold(theirs)
    assert (locks.try_lock(tmp_path / "lock", shared=True) is not None) == shared
    assert (locks.try_lock(tmp_path / "lock") is not None) == exclusive


def test_a_killed_process_leaves_nothing_to_unlock(tmp_path, hold):
    process = hold("exclusive")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    lock = locks.wait_lock(tmp_path / "lock")
    assert locks.try_lock(tmp_path / "lock", shared=True) is None
    lock.release()
    lock.release()
    assert locks.try_lock(tmp_path / "lock") is not None
    assert (tmp_path / "lock").read_bytes() == b""


def test_a_lock_that_was_removed_is_made_again(tmp_path):
    first = locks.wait_lock(tmp_path / "lock")
    (tmp_path / "lock").unlink()
    assert locks.try_lock(tmp_path / "lock") is not None
    first.release()


def test_a_file_that_is_there_for_more_than_its_lock_stays_as_it_is(tmp_path):
    (tmp_path / "mark").write_text("{}")
    held = locks.wait_lock(tmp_path / "mark")
    assert locks.try_lock(tmp_path / "mark", shared=True) is None
    held.release()
    assert (tmp_path / "mark").read_text() == "{}"
