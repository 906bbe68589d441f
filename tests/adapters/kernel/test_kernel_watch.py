"""Real filters in real children: which calls are reported, which are exempt, which are refused."""

import errno
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.kernel.kernel_watch import QUIET, reason_not, watch
from onnxbuild.adapters.observe.supervisor import ADOPTION, WATCH_FILE, Supervisor, connected
from tests.attack.no_listener import refuse_listeners

pytestmark = pytest.mark.skipif(bool(reason_not()), reason="system calls can't be observed here")
PATIENCE_S = 30


class World:
    """A project, a job's folder, and what a fork of this process is seen to do in them.

    Attributes:
        calls: How many calls of the last fork were reported.
    """

    def __init__(self, root: Path) -> None:
        self.project, self.job = root / "project", root / "job"
        self.project.mkdir()
        self.job.mkdir()
        self.calls = 0
        self.reported = {
            "job": str(self.job),
            "project": str(self.project),
            "unseen": [],
            "software": [sys.prefix, sys.base_prefix],
            "sites": [],
            "interpreter": os.path.realpath(sys.executable),
            "named": [],
            "readable": [
                str(self.project),
                "/usr",
                "/lib",
                "/lib64",
                "/etc",
                "/proc",
                "/dev",
                "/bin",
            ],
            "listable": [str(self.project)],
            "writable": [str(self.job), "/dev/null"],
            "declared": [],
            "enforce": False,
            "shared_memory": [],
        }

    def path(self, name: str, text: str = "x") -> str:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def seen(self, act, code: int = 0):
        """What is seen of a child that calls `act`, and ends with what it returns."""
        (self.job / WATCH_FILE).write_text(json.dumps(self.reported))
        ours, theirs = connected()
        child = os.fork()
        if child == 0:
            status = 99
            try:
                ours.close()
                os.chdir(self.project)
                assert watch(theirs)
                theirs.close()
                status = act() or 0
            finally:
                os._exit(status)
        theirs.close()
        supervisor = Supervisor(self.job, child, ours)
        self.calls = 0
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            assert time.monotonic() < deadline_s
            ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            waiting = select.poll()
            waiting.register(supervisor, select.POLLIN)
            for _, event in waiting.poll(50):
                if not supervisor.started:
                    assert supervisor.start()
                else:  # once all processes have ended, it is readable for ever, and says so
                    is_call = bool(event & select.POLLIN)
                    self.calls += is_call
                    assert supervisor.serve() == is_call
            if ended is not None:
                break
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
        result = supervisor.result()
        supervisor.close()
        return result


@pytest.fixture
def world(tmp_path):
    return World(tmp_path.resolve())


def test_a_file_that_is_read_is_reported_with_its_state(world):
    path = world.path("a.txt")
    assert list(world.seen(lambda: open(path).close())["read"]) == [path]


def test_a_relative_path_is_reported_as_an_absolute_one_from_a_folder_or_a_descriptor(world):
    path = world.path("deep/a.txt")

    def act():
        open("deep/../deep/a.txt").close()
        folder = os.open("deep", os.O_RDONLY | os.O_DIRECTORY)
        os.close(os.open("a.txt", os.O_RDONLY, dir_fd=folder))

    assert list(world.seen(act)["read"]) == [path]


def test_what_other_programs_and_their_children_read_is_reported(world):
    path, shell = world.path("a.txt"), world.path("shell")
    shutil.copy("/bin/sh", shell)  # the system's own is part of a Python that is in /usr
    seen = world.seen(lambda: subprocess.call([shell, "-c", "(cat a.txt; true) >/dev/null"]))
    assert path in seen["read"]
    assert shell in seen["read"]  # executed


def test_a_quiet_open_passes_unseen_and_works(world):
    path = world.path("a.txt", "text")

    def act():
        return 0 if os.read(os.open(path, os.O_RDONLY | QUIET), 9) == b"text" else 1

    assert world.seen(act)["read"] == {}


def test_each_link_on_the_way_is_reported_with_its_target(world):
    world.path("step1/a.txt")
    (world.project / "latest").symlink_to("step1")
    (world.project / "alias.txt").symlink_to("latest/a.txt")
    seen = world.seen(lambda: open("alias.txt").close())
    root = str(world.project)
    assert seen["links"] == {f"{root}/alias.txt": "latest/a.txt", f"{root}/latest": "step1"}
    assert list(seen["read"]) == [f"{root}/alias.txt"]


def test_what_is_listed_and_what_is_looked_for_in_vain_is_reported(world):
    world.path("layers/one.py")

    def act():
        os.listdir("layers")
        os.path.exists("flag")
        try:
            open("missing.txt")
        except FileNotFoundError:
            return 0

    seen = world.seen(act)
    root = str(world.project)
    assert list(seen["listed"]) == [f"{root}/layers"]
    assert seen["looked"] == {f"{root}/flag": "absent", f"{root}/missing.txt": "absent"}


def test_what_the_step_makes_in_its_own_folder_is_no_input(world):
    def act():
        path = world.job / "made.txt"
        path.write_text("x")
        return 0 if path.read_text() == "x" else 1

    seen = world.seen(act)
    assert (seen["read"], seen["written"], seen["looked"]) == ({}, {}, {})


def test_what_is_not_granted_is_reported_and_with_enforcement_refused(world, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("x")

    def act():
        try:
            open(secret).close()
        except PermissionError:
            return 13
        return 0

    assert list(world.seen(act)["refused"]) == [str(secret)]
    world.reported["enforce"] = True
    assert list(world.seen(act, code=13)["refused"]) == [str(secret)]


def test_what_would_be_written_is_reported_as_that_for_files_folders_and_sockets(world):
    def act():
        open("new.txt", "w").close()
        os.mkdir("folder")
        socket.socket(socket.AF_UNIX).bind("socket")

    seen = world.seen(act)
    root = str(world.project)
    assert list(seen["written"]) == [f"{root}/new.txt", f"{root}/folder", f"{root}/socket"]
    assert seen["read"] == {}


def test_io_uring_which_no_filter_sees_is_not_there(world):
    def act():
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall(425, 1, None)
        return 0 if ctypes.get_errno() == errno.ENOSYS else 1

    world.seen(act)


def test_extended_attributes_which_no_key_has_are_not_there(world):
    path = world.path("data.bin")

    def act():
        for call in (lambda: os.getxattr(path, "user.x"), lambda: os.listxattr(path)):
            with pytest.raises(OSError) as caught:
                call()
            assert caught.value.errno == errno.ENOTSUP
        shutil.copy2(path, world.job / "copy.bin")  # which copies them where there are some
        return 0

    world.seen(act)


def test_a_fork_that_reports_by_itself_is_taken_for_the_step(world):
    """Told apart by who is named as the reader: the step itself has no program's name."""
    secret = str(world.project.parent / "secret.txt")
    Path(secret).write_text("x")

    def forked(prepare):
        def act():
            child = os.fork()
            if child == 0:
                prepare()
                open(secret).close()
                os._exit(0)
            os.waitpid(child, 0)

        return act

    plain = world.seen(forked(lambda: None))["refused"]
    taken = world.seen(forked(lambda: os.access(world.job / ADOPTION, os.F_OK)))["refused"]
    assert plain[secret].startswith("python")
    assert taken[secret] == ""


@pytest.mark.parametrize("way", ["/proc/self/fd/{number}", "/dev/fd/{number}"])
def test_a_file_that_is_read_by_way_of_a_descriptor_is_reported(world, way):
    path = world.path("a.txt")

    def act():
        open(way.format(number=os.open(path, os.O_PATH))).close()

    assert list(world.seen(act)["read"]) == [path]


def test_a_look_below_opt_is_reported_and_one_below_usr_is_the_machine_s_own(world):
    def act():
        os.path.exists("/opt/no-such-model")
        os.path.exists("/usr/no-such-file")

    assert world.seen(act)["looked"] == {"/opt/no-such-model": "absent"}


def test_whether_the_kernel_can_observe_is_tried_once_and_anew_in_a_child(monkeypatch):
    assert reason_not() == ""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            refuse_listeners()
            status = 0 if reason_not() == os.strerror(errno.EPERM) else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    monkeypatch.setattr(os, "fork", None)
    assert reason_not() == ""
