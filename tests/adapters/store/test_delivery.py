"""What is handed over is the old or the new, whole, whenever its writer dies."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.linux_files import exchange
from onnxbuild.adapters.store.delivery import put, scratch_beside, write_tree

OLD, NEW = {"a/b": b"old", "c": b"old"}, {"a/b": b"new", "d": b"new"}

KILLED = """
import os, signal, sys
from pathlib import Path
from onnxbuild.adapters.store import delivery

NEW = {"a/b": b"new", "d": b"new"}
folder, moment, way, end = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
count = 0

def on_event(event, arguments):
    global count
    if event == "import" or not event.startswith(("os.", "shutil.", "open", "ctypes.", "fcntl.")):
        return
    if way == "in two" and event != "os.rename":
        return
    count += 1
    if count == moment:
        if end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyboardInterrupt

with delivery.scratch_beside(folder) as scratch:
    delivery.write_tree(scratch / "x", NEW)
    sys.addaudithook(on_event)
    if way == "in two":
        delivery.replace_in_two(scratch / "x", folder / "x", scratch)
    else:
        delivery.put(scratch / "x", folder / "x", scratch)
"""


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def replaced(folder: Path, moment: int, *, way: str = "at once", end: str = "kill") -> int:
    """Replace x by another process that ends at the `moment`-th thing that it asks of the system."""
    arguments = [sys.executable, "-c", KILLED, str(folder), str(moment), way, end]
    return subprocess.run(arguments, capture_output=True, check=False).returncode


def test_whoever_is_killed_while_replacing_leaves_the_old_or_the_new(tmp_path):
    seen = []
    for moment in range(1, 100):
        folder = tmp_path / str(moment)
        folder.mkdir()
        write_tree(folder / "x", OLD)
        code = replaced(folder, moment)
        found = files(folder / "x")  # before anybody tidies up
        assert found in (OLD, NEW), moment
        seen.append(found)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert seen[-1] == NEW
    assert OLD in seen
    assert len(seen) > 3, "it was hardly killed at all"


@pytest.mark.parametrize("end", ["kill", "interrupt"])
def test_what_dies_between_two_renames_is_put_back(tmp_path, end):
    """On a filesystem that can't exchange two names."""
    write_tree(tmp_path / "x", OLD)
    assert replaced(tmp_path, 2, way="in two", end=end) != 0
    if end == "kill":
        assert not (tmp_path / "x").exists(), "it did not die between the two"
    with scratch_beside(tmp_path):
        assert files(tmp_path / "x") == OLD
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_was_replaced_in_two_renames_stays_replaced(tmp_path):
    write_tree(tmp_path / "x", OLD)
    assert replaced(tmp_path, 99, way="in two") == 0
    with scratch_beside(tmp_path):
        assert files(tmp_path / "x") == NEW
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_link_in_the_way_is_replaced_and_what_it_leads_to_is_not(tmp_path):
    write_tree(tmp_path / "elsewhere", OLD)
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases/x").symlink_to(tmp_path / "elsewhere")
    with scratch_beside(tmp_path / "releases") as scratch:
        write_tree(scratch / "x", NEW)
        put(scratch / "x", tmp_path / "releases/x", scratch)
    assert not (tmp_path / "releases/x").is_symlink()
    assert files(tmp_path / "releases/x") == NEW
    assert files(tmp_path / "elsewhere") == OLD


def test_two_names_are_exchanged_in_one_go_whatever_they_are(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    if not exchange(tmp_path / "file", tmp_path / "folder"):
        pytest.skip("this filesystem exchanges nothing")
    assert (tmp_path / "folder").read_text() == "text"
    assert (tmp_path / "file").is_dir()
    with pytest.raises(OSError, match="No such file") as caught:
        exchange(tmp_path / "file", tmp_path / "nothing")
    assert caught.value.filename == str(tmp_path / "nothing")
