"""Locks of SQLite, for systems without flock."""

import os
import signal
import subprocess
import sys

import pytest

from onnxbuild.adapters.disk import database_locks, locks
from onnxbuild.adapters.disk.locks import FileLock
from onnxbuild.adapters.portable import VARIABLE

HOLD = """\
import os, sys, time
if sys.argv[3] == "without flock":
    sys.modules["fcntl"] = None
from pathlib import Path
from onnxbuild.adapters.disk import locks
held = locks.wait_lock(Path(sys.argv[1]), shared=sys.argv[2] == "shared")
print("held", flush=True)
time.sleep(60)
"""


def try_lock(path, *, shared=False):
    held = database_locks.take(path, shared=shared, wait=False)
    return None if held is None else FileLock(held.close)


@pytest.fixture
def hold(tmp_path):
    """Hold the lock in another process."""
    started = []

    def start(kind, system="without flock", **env):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, tmp_path / "lock", kind, system],
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def can_lock(path, *, shared=False):
    """Take a lock, and give it up."""
    lock = try_lock(path, shared=shared)
    if lock is not None:
        lock.release()
    return lock is not None


@pytest.mark.parametrize(
    ("theirs", "shared", "exclusive"), [("shared", True, False), ("exclusive", False, False)]
)
def test_many_may_share_and_one_alone_keeps_all_others_out(
    tmp_path, hold, theirs, shared, exclusive
):
    hold(theirs)
    assert can_lock(tmp_path / "lock", shared=True) == shared
    assert can_lock(tmp_path / "lock") == exclusive


def test_a_killed_process_leaves_nothing_to_unlock(tmp_path, hold):
    process = hold("exclusive")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    lock = try_lock(tmp_path / "lock")
    assert try_lock(tmp_path / "lock", shared=True) is None
    lock.release()
    lock.release()
    assert can_lock(tmp_path / "lock")
    assert (tmp_path / "lock").read_bytes() == b""


@pytest.mark.parametrize("name", ["lock", ".mark.lock"])
def test_a_link_in_the_place_of_the_file_is_refused_and_not_followed(tmp_path, name):
    (tmp_path / "mark").write_text("{}")
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="not a regular file"):
        try_lock(tmp_path / ("lock" if name == "lock" else "mark"))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("theirs", ["shared", "exclusive"])
def test_a_portable_process_and_another_keep_each_other_out(tmp_path, hold, monkeypatch, theirs):
    hold(theirs, "with flock", **{VARIABLE: ""})
    monkeypatch.setenv(VARIABLE, "1")  # as a portable `cache gc`
    assert locks.try_lock(tmp_path / "lock") is None
    assert (locks.try_lock(tmp_path / "lock", shared=True) is not None) == (theirs == "shared")


@pytest.mark.parametrize("theirs", ["shared", "exclusive"])
def test_a_process_is_kept_out_by_a_portable_one(tmp_path, hold, theirs):
    hold(theirs, "with flock", **{VARIABLE: "1"})
    assert locks.try_lock(tmp_path / "lock") is None
    assert (locks.try_lock(tmp_path / "lock", shared=True) is not None) == (theirs == "shared")
