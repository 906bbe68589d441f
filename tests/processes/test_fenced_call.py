"""What is called in a fenced process writes its scratch folder alone, and reaches nobody."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.kernel import landlock
from onnxbuild.adapters.portable import VARIABLE
from onnxbuild.core.errors import StepError
from onnxbuild.processes.fenced_call import call_fenced

fenced = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel has no Landlock")


def call(function, argument, scratch: Path, *readable: Path, timeout_s: float = 60):
    scratch.mkdir(exist_ok=True)
    return call_fenced(
        function, argument, readable=readable, scratch=scratch, where="x:y", timeout_s=timeout_s
    )


@fenced
def test_it_reads_what_it_was_given_and_writes_its_scratch_folder(tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given/file").write_text("")
    assert call("os:listdir", str(tmp_path / "given"), tmp_path / "a", tmp_path / "given") == [
        "file"
    ]
    assert call("os:mkdir", "made", tmp_path / "b") is None
    assert (tmp_path / "b" / "work" / "made").is_dir()


@fenced
@pytest.mark.parametrize(
    ("function", "argument"),
    [
        ("os:mkdir", "{outside}/new"),
        ("os:remove", "{outside}/file"),
        ("os:listdir", "{outside}"),
        ("shutil:rmtree", "{outside}"),
        ("os:mkdir", "/dev/shm/onnxbuild-was-here"),
        ("os:mkdir", "/tmp/onnxbuild-was-here"),
        ("os:listdir", "~"),
    ],
)
def test_it_touches_nothing_outside(tmp_path, function, argument):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("precious")
    path = str(Path(argument.format(outside=outside)).expanduser())
    with pytest.raises(StepError, match="PermissionError: "):
        call(function, path, tmp_path / "scratch")
    assert (outside / "file").read_text() == "precious"
    assert sorted(path.name for path in outside.iterdir()) == ["file"]
    assert not Path("/dev/shm/onnxbuild-was-here").exists()


@fenced
def test_it_reaches_nobody(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = list(server.getsockname())
        with pytest.raises(StepError, match="PermissionError: "):
            call("socket:create_connection", address, tmp_path / "a")
    with pytest.raises(StepError, match=r"PermissionError: |gaierror: "):
        call("socket:gethostbyname", "example.org", tmp_path / "b")
    for number, family in enumerate((socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)):
        with pytest.raises(StepError, match="PermissionError: "):
            call("socket:socket", int(family), tmp_path / f"c{number}")


@fenced
def test_its_errors_are_reported_and_its_environment_is_clean(tmp_path):
    with pytest.raises(StepError, match=r"FileNotFoundError: .*nothing-there"):
        call("os:listdir", "/usr/nothing-there", tmp_path / "a")
    assert call("os:getenv", "PYTEST_CURRENT_TEST", tmp_path / "b") is None
    with pytest.raises(StepError, match="its process ended with status 3"):
        call("os:_exit", 3, tmp_path / "c")
    with pytest.raises(StepError, match="SystemExit: 3"):
        call("sys:exit", 3, tmp_path / "d")
    with pytest.raises(StepError, match="MemoryError"):
        call("builtins:bytearray", 1 << 60, tmp_path / "e")


def test_without_a_fence_it_does_what_its_user_may(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    (tmp_path / "outside").mkdir()
    assert call("os:listdir", str(tmp_path / "outside"), tmp_path / "a") == []
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = list(server.getsockname())
        with pytest.raises(StepError, match="Object of type socket"):  # it was connected
            call("socket:create_connection", address, tmp_path / "b")


def test_it_is_stopped_when_its_time_is_over(tmp_path):
    begin_s = time.monotonic()
    with pytest.raises(StepError, match=r"stopped: it ran longer than 0\.5 s") as caught:
        call("time:sleep", 600, tmp_path / "a", timeout_s=0.5)
    assert time.monotonic() - begin_s < 30
    assert caught.value.fix == "give it longer: `--timeout 1`"


def test_it_dies_with_whoever_called_it(tmp_path):
    script = (
        "import sys; from pathlib import Path\n"
        "from onnxbuild.processes.fenced_call import call_fenced\n"
        "call_fenced('time:sleep', 600, readable=(), scratch=Path(sys.argv[1]), where='')\n"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    caller = subprocess.Popen([sys.executable, "-c", script, str(scratch)])
    try:
        until(lambda: (scratch / "work").is_dir() and sleepers(scratch))
        (child,) = sleepers(scratch)
    finally:
        caller.kill()
        caller.wait()
    until(lambda: not Path(f"/proc/{child}/cwd").exists())


def sleepers(scratch: Path) -> list[str]:
    """Processes that work in the scratch folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cwd").readlink().is_relative_to(scratch):
                found.append(path.name)
        except OSError:
            continue
    return found


def until(holds) -> None:
    end_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.02)
