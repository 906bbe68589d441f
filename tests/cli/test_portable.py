"""The ways that every system has: no forks, no flock, no Landlock, no seccomp; and modules of POSIX that are not there."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.portable import VARIABLE
from tests.cli.conftest import QUICK, RECIPE, heed_signals, make_project
from tests.fork_servers import COLD

pytestmark = pytest.mark.slow

PORTABLE = {VARIABLE: "1"}
PATIENCE_S = 240.0
"""For what takes seconds, on a machine that may be busy: each step imports its frameworks anew."""
WITHOUT = """\
import sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
from onnxbuild.cli.main import main
main()
"""


@pytest.fixture(scope="module", autouse=True)
def _cold():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(COLD, "1")
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    made = make_project(tmp_path_factory.mktemp("portable") / "project")
    recipe = "".join(line for line in RECIPE.splitlines(keepends=True) if "benchmark" not in line)
    made.write("tiny.yaml", f"{recipe}{QUICK}")
    drawing = "    import numpy\n\n    torch.manual_seed(int(numpy.random.randint(1 << 30)))\n"
    made.edit("models/tiny.py", "    torch.manual_seed(0)\n", drawing)
    made.patience_s = 600  # each step imports its frameworks anew
    done = made("run", "tiny.yaml", env=PORTABLE)
    assert done.code == 0, done.out + done.err
    return made


def test_it_gives_the_same_bytes_and_each_finds_what_the_other_built(built):
    out = built.folder / "artifacts/out/tiny/fp32"
    found = {each.name: each.read_bytes() for each in out.iterdir() if each.is_file()}
    found = {name: found[name] for name in found if not name.startswith("benchmark")}
    again = built("run", "tiny.yaml", "--store", "other")
    assert again.code == 0, again.out + again.err
    for name, content in found.items():
        other = built.folder / f"other/out/tiny/fp32/{name}"
        assert other.read_bytes() == content, name
    for arguments, env in ((("tiny.yaml",), {}), (("tiny.yaml", "--store", "other"), PORTABLE)):
        out = built("run", *arguments, env=env).out
        assert "nothing to do" in out or ": 0 built" in out


def test_after_an_edit_what_depends_on_it_runs_and_an_undeclared_file_is_refused(built, tmp_path):
    folder = tmp_path / "project"
    shutil.copytree(built.folder, folder, symlinks=True)
    other = type(built)(folder)
    other.edit("tiny.yaml", "example: 2", "example: 3")
    plan = other("plan", "tiny.yaml", env=PORTABLE)
    assert "tiny:export" in plan.out
    assert other("run", "tiny.yaml", env=PORTABLE).code == 0
    model = folder / "models/tiny.py"
    model.write_text(f"open('secret.txt').read()\n{model.read_text()}")
    (folder / "secret.txt").write_text("s")
    refused = other("run", "tiny.yaml", env=PORTABLE)
    assert refused.code != 0
    assert "secret.txt" in refused.out + refused.err


def test_a_run_that_is_interrupted_ends_and_leaves_nothing_to_clean_up(tmp_path):
    project = make_project(tmp_path / "project")
    sleeps = "    import time; print('begins', flush=True); time.sleep(600)"
    project.edit("models/tiny.py", "    torch.manual_seed(0)", sleeps)
    process = subprocess.Popen(
        [sys.executable, "-m", "onnxbuild", "run", "tiny.yaml", "--verbose"],
        cwd=project.folder,
        env={**os.environ, **project.cache, **PORTABLE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - this process has no threads
    )
    end_s = time.monotonic() + PATIENCE_S
    while not any(log.read_text() for log in project.folder.glob("artifacts/runs/*/logs/*.log")):
        assert time.monotonic() < end_s, "no step has started"
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, said
    assert list((project.folder / "artifacts/tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("lint", "tiny.yaml"), "ok: tiny"),
        (("plan", "tiny.yaml"), "cached"),
        (("inspect", "artifacts/out/tiny/fp32/model.onnx"), "nodes"),
        (("run", "tiny.yaml"), "up to date: 8 steps, nothing to do"),
        (
            ("verify", "dist/tiny-1.0"),
            "consistent: tiny 1.0; not signed, so whoever made it may have written all of it",
        ),
        (("verify", "dist/tiny-1.0", "--run"), "fp32 on cpu: 4 golden points within tolerance"),
        (("init", "artifacts/out/tiny/fp32/model.onnx"), "wrote"),
        (("doctor",), "ONNXBUILD_PORTABLE is set, or this system is not Linux"),
    ],
)
def test_verbs_work_where_modules_of_posix_can_not_be_imported(built, arguments, expected):
    if arguments[0] == "verify" and not (built.folder / "dist").exists():
        assert built("lock", "tiny.yaml").code == 0
        released = built("release", "tiny.yaml", "--version", "1.0", "--allow-dirty")
        assert released.code == 0, released.out + released.err
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        cwd=built.folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert expected in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
