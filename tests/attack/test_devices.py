"""A step whose code looks for a GPU depends on the machine's devices; another one does not.

/dev is the command's own, in a mount namespace, with and without the device files of a GPU. torch asks the
driver's library (libcuda.so.1) whether there is a GPU, if it is built for CUDA. Where it is not, `is_available()`
returns False without a look, so the code loads that library itself.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.adapters.kernel.kernel_watch import reason_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(reason_not()), reason="system calls can't be observed here"),
]
ASKS = """\
import ctypes


def load(width=8):
    import torch

    torch.manual_seed(0)
    there = torch.cuda.is_available()
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        there = False
    return torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, 2 + there))
"""
IN_CHILD = """\
import subprocess
import sys


def load(width=8):
    import torch

    torch.manual_seed(0)
    code = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    there = subprocess.call([sys.executable, "-c", code], stderr=subprocess.DEVNULL) == 0
    return torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, 2 + there))
"""
OWN_DEVICES = """\
set -e
mount -t tmpfs -o mode=755 none "$1"
for each in null zero full random urandom tty; do
    : > "$1/$each"
    mount --bind "/dev/$each" "$1/$each"
done
mkdir "$1/shm"
mount --bind /dev/shm "$1/shm"
ln -s /proc/self/fd "$1/fd"
for each in $2; do
    : > "$1/$each"
done
mount --move "$1" /dev
shift 2
exec "$@"
"""


class Machine:
    """Runs commands with a /dev of their own.

    Args:
        project: Where they run.
        folder: An empty folder.
    """

    def __init__(self, project: Path, folder: Path) -> None:
        self._project = project
        self._folder = folder

    def __call__(self, devices: str, *command: str) -> str:
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        own_devices = ("sh", "-c", OWN_DEVICES, "sh", self._folder, devices)
        done = subprocess.run(
            ["unshare", "--mount", *user, *own_devices, *command],
            cwd=self._project,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, devices: str) -> tuple[list[str], str]:
        """Return the recipes whose `reference` ran, and what was printed."""
        recipes = sorted(path.name for path in self._project.glob("*.yaml"))
        command = (sys.executable, "-m", "onnxbuild", "run", *recipes, "--only", "reference", "-v")
        printed = self(devices, *command)
        lines = [line.split() for line in printed.splitlines() if line.startswith("run     ")]
        return sorted(line[1] for line in lines if line[:1] == ["run"]), printed


@pytest.fixture
def machine(project, tmp_path) -> Machine:
    folder = tmp_path / "dev"
    folder.mkdir()
    made = Machine(project.folder, folder)
    try:
        assert made("nvidia0", "ls", "/dev/nvidia0") == "/dev/nvidia0\n"
    except (AssertionError, FileNotFoundError) as error:
        pytest.skip(f"no mount namespace with a /dev of its own: {error}")
    return made


@pytest.mark.parametrize("code", [ASKS, IN_CHILD], ids=["in the step", "in a child"])
def test_other_devices_run_the_step_that_looked_for_them_and_no_other(project, machine, code):
    recipe = (project.folder / "tiny.yaml").read_text()
    project.write("asks.yaml", recipe.replace("tiny", "asks"))
    project.write("models/asks.py", code)
    assert machine.run("")[0] == ["asks:reference", "tiny:reference"]
    assert machine.run("")[0] == []
    ran, printed = machine.run("nvidia0 nvidiactl")
    assert ran == ["asks:reference"], printed
    assert "nvidia0" in printed
    assert machine.run("nvidia0 nvidiactl")[0] == []
    ran, printed = machine.run("nvidia0 nvidia1 nvidiactl")
    assert ran == ["asks:reference"], printed
    assert machine.run("")[0] == [], "a result of these devices is in the store"
