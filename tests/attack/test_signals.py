"""What a launcher leaves blocked or ignored, and processes that are stopped: no run hangs."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import heed_signals
from tests.fork_servers import COLD, command

pytestmark = pytest.mark.slow

EXPORT = ("run", "tiny.yaml", "--only", "export")
PATIENCE_S = 120.0
"""For what takes seconds at most, on a machine that may be busy."""
STOP_PARENT = "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)"


def block_all() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)


def test_a_launcher_that_blocks_and_ignores_signals_changes_nothing(project, monkeypatch):
    """Both are inherited: the ends of children would never be known, and SIGTERM not heeded."""
    monkeypatch.setenv(COLD, "1")  # a fork server of its own, which inherits them
    code = (
        "import signal, subprocess\n"
        "    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
        "    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL\n"
        "    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "    assert subprocess.run(['false']).returncode == 1\n"
        "    torch.manual_seed(0)\n"
    )
    project.edit("models/tiny.py", "torch.manual_seed(0)\n", code)
    done = subprocess.run(
        command(*EXPORT),
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=block_all,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fork_server_that_is_stopped_ends_the_run_with_a_sentence(project, monkeypatch):
    monkeypatch.setenv(COLD, "1")
    project.edit("models/tiny.py", "import torch\n", f"import torch\n{STOP_PARENT}\n")
    done = project(*EXPORT, "--timeout", "6")
    assert done.code == 1
    assert "was stopped by a signal and gave no answer" in done.out


def test_a_step_that_is_stopped_ends_with_its_time(project):
    stop = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    project.edit("models/tiny.py", "import torch\n", f"import torch\n{stop}\n")
    done = project(*EXPORT, "--timeout", "2")
    assert done.code == 1
    assert "stopped: it ran longer than 2 s (--timeout)" in done.out


@pytest.mark.parametrize("whom", ["os.getppid()", "os.getpid()"])
def test_ctrl_c_ends_a_run_whose_processes_are_stopped(project, whom):
    project.edit("models/tiny.py", "import torch\n", "import torch, os, signal, sys\n")
    stop = f"print(os.getpid(), os.getppid()); sys.stdout.flush(); os.kill({whom}, signal.SIGSTOP)"
    code = f"{stop}\n    import time; time.sleep(600)\n"
    project.edit("models/tiny.py", "torch.manual_seed(0)\n", code)
    process = subprocess.Popen(
        command(*EXPORT),
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - no threads here
    )
    stopped = wait_for_log(project.folder)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Traceback" in out) == (130, False), out
    end_s = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}").exists() for pid in stopped):
        assert time.monotonic() < end_s
        time.sleep(0.05)


def wait_for_log(folder: Path) -> list[int]:
    """The processes that the step's log names, once the step is about to stop one."""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        for log in folder.glob("artifacts/runs/*/logs/*.log"):
            if log.read_text().strip():
                return list(map(int, log.read_text().split()))
        time.sleep(0.05)
    raise AssertionError("the step did not start")


DROPS = """\
import os, signal, sys, time, weakref
from onnxbuild.processes.signals import end_on_signals
end_on_signals()
class Thing: pass
thing = Thing()
kept = weakref.ref(thing, lambda _: os.kill(os.getpid(), {number}))
try:
    del thing
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_a_signal_that_comes_while_a_callback_runs_ends_the_command():
    """Python drops what is raised there, and prints a traceback; imports have such callbacks."""
    done = subprocess.run(
        [sys.executable, "-c", DROPS.format(number=int(signal.SIGINT))],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=heed_signals,
    )
    assert (done.returncode, done.stderr) == (130, "")
