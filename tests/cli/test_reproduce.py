"""`onnxbuild reproduce`: builds that must be the same elsewhere, and what each one that isn't depends on."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import numpy as np
import pytest

import onnxbuild
from tests.cli.conftest import heed_signals

pytestmark = pytest.mark.slow

_SCALED = """\
    model = torch.nn.Sequential(
        torch.nn.Linear(4, width), activation(), torch.nn.Linear(width, 2)
    )
    with torch.no_grad():
        model[2].weight[1, 3] *= scale
    return model
"""


def plant(project, code):
    """Make one weight of the model depend on `scale`, which `code` computes."""
    path = project.folder / "models/tiny.py"
    head = path.read_text().partition("    return torch.nn.Sequential")[0]
    path.write_text(head + "".join(f"    {line}\n" for line in code.splitlines()) + _SCALED)


def leftovers(folder):
    return set(folder.glob("onnxbuild-reproduce-*"))


def reproduce(project, *arguments):
    scratch = project.folder.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    seen = project("reproduce", "tiny.yaml", *arguments, env={"TMPDIR": str(scratch)})
    assert leftovers(scratch) == set()
    return seen


IN_THE_MODEL = "model.onnx: weight '2.weight' of "
AT = ": 1 of 16 elements differs, by "


@pytest.mark.always
def test_a_time_is_found_and_the_gate_that_it_fails_does_not_hide_it(project):
    plant(project, "import time\nscale = time.time_ns() % 100_000 / 1000")
    seen = reproduce(project, "--only", "fp32/validate")
    assert "FAILED  tiny:fp32/validate" in seen.out
    assert seen.code == 4, seen.err
    assert seen.err.startswith("error: tiny:export: a fresh build gives another 'model': ")
    assert IN_THE_MODEL in seen.err
    assert AT in seen.err
    assert "because: it differs in equal surroundings, too: the time, randomness" in seen.err
    assert "after it: " in seen.err
    assert "also differs, independently: tiny:reference" in seen.err
    assert "fix: seed every generator" in seen.err


def test_the_order_of_a_set_is_found(project):
    code = "names = set('abcdefgh')\nscale = float(sum(i * ord(c) for i, c in enumerate(names)))"
    plant(project, code)
    seen = reproduce(project, "--only", "export")
    assert seen.code == 4, seen.err
    assert IN_THE_MODEL in seen.err
    assert (
        "because: it depends on PYTHONHASHSEED: the order of a set, or hash(), gets into"
        in seen.err
    )
    assert "(PYTHONHASHSEED 0 -> 1 alone makes it differ)" in seen.err
    assert "fix: iterate over `sorted(...)`" in seen.err


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="there is one core")
def test_a_sum_that_depends_on_threads_is_found(project):
    """BLAS splits a long inner product among its threads, which are as many as there are cores."""
    plant(
        project,
        "import numpy\n"
        "a = numpy.random.default_rng(0).standard_normal(500_000) * 1e12\n"
        "a = numpy.concatenate([a, -a[::-1]])\n"
        "scale = 1 + float(numpy.dot(a, numpy.ones_like(a)))",
    )
    seen = reproduce(project, "--only", "reference", "--json")
    assert seen.code == 4, seen.err
    reported = json.loads(seen.out.splitlines()[-1])
    assert (reported["type"], reported["step"], reported["output"]) == (
        "reproduced",
        "tiny:reference",
        "reference",
    )
    assert "array 'output.logits': float32 [" in reported["what"]
    cores = len(os.sched_getaffinity(0))
    assert f"(cores {cores} -> 1 alone makes it differ)" in reported["what"]


def test_a_path_in_the_weights_is_found_and_both_can_be_kept(project):
    plant(project, "import hashlib\nscale = float(hashlib.sha256(__file__.encode()).digest()[0])")
    kept = project.folder.parent / "kept"
    seen = reproduce(project, "--only", "reference", "--keep", str(kept))
    assert seen.code == 4, seen.err
    assert "because: it depends on where the project is" in seen.err
    assert f"both: {kept}/round-1/differs/stored and {kept}/round-1/differs/rebuilt" in seen.err
    stored, rebuilt = (
        {path.name: path.read_bytes() for path in (kept / "round-1/differs" / side).iterdir()}
        for side in ("stored", "rebuilt")
    )
    assert stored.keys() == rebuilt.keys()
    assert stored != rebuilt
    again = reproduce(project, "--keep", str(kept))
    assert (again.code, again.out) == (2, "")
    assert "is not an empty folder" in again.err


def test_what_was_not_recorded_is_found_and_named(project):
    """`stat` is not fenced, so the step may ask how large a file is; that it is there is recorded."""
    project.write("models/flag", "on")
    needs = "import os\nflag = os.path.dirname(__file__) + '/flag'\nscale = 2.0\n"
    plant(project, f"{needs}if not os.path.getsize(flag):\n    raise FileNotFoundError(flag)")
    seen = reproduce(project, "--only", "reference")
    assert seen.code == 4, seen.err
    assert "a fresh build of it fails: models/tiny.py:" in seen.err
    assert "because: it uses something of the project that the build did not record" in seen.err
    assert "empty there: models/flag; the build recorded that it is there" in seen.err


# --- what must pass ----------------------------------------------------------------------------------

_MODEL = """\
import importlib
import os

import numpy
import torch

import hooked
import listed


def load(width=8):
    here = os.path.dirname(__file__)
    torch.manual_seed(len(os.listdir(f"{here}/layers")))
    helper = importlib.import_module("hel" + "per")
    scale = hooked.SCALE * listed.scale()
    scale *= float(numpy.load(f"{here}/../data/scale.npy"))
    scale *= float(numpy.load(f"{here}/../../outside/scale.npy"))
    model = torch.nn.Sequential(torch.nn.Linear(4, width), helper.activation())
    model.append(torch.nn.Linear(width, 2))
    with torch.no_grad():
        model[2].weight *= scale
    return model
"""
_RECIPE = """\
extends: ../shared/base.yaml
name: tiny
model:
  entrypoint: models/tiny.py:load
  files: ["data/*.npy", ../outside/scale.npy]
"""
_HOOK = """\
import importlib.util, sys
class Hook:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "hooked":
            return importlib.util.spec_from_file_location(name, {place!r})
sys.meta_path.append(Hook)
"""


@pytest.fixture
def elaborate(project):
    """A project with everything that a recipe may lean on; returns its interpreter."""
    folder = project.folder
    project.write(
        "../shared/base.yaml",
        (folder / "tiny.yaml")
        .read_text()
        .replace("model: {entrypoint: models/tiny.py:load}\n", ""),
    )
    project.write("tiny.yaml", _RECIPE)
    project.write("models/tiny.py", _MODEL)
    for name in ("layers/a.txt", "layers/b.txt", "unused.py", "notes.md"):
        project.write(f"models/{name}", "unread")
    project.write("src/listed/__init__.py", "from listed.parts import scale\n")
    project.write("src/listed/parts.py", "def scale():\n    return 2.0\n")
    project.write("libs/hooked.py", "SCALE = 3.0\n")
    for name in ("real", "outside"):
        (folder.parent / name if name == "outside" else folder / name).mkdir()
    np.save(folder / "real/scale.npy", 0.5)
    np.save(folder / "../outside/scale.npy", 0.25)
    (folder / "data").mkdir()
    (folder / "data/scale.npy").symlink_to("../real/scale.npy")
    venv.create(folder / ".venv", symlinks=True)
    site = next((folder / ".venv").glob("lib/python*/site-packages"))
    (site / "_hook.py").write_text(_HOOK.format(place=str(folder / "libs/hooked.py")))
    parent = Path(onnxbuild.__file__).parents[1]
    installed = [sysconfig.get_paths()["purelib"], str(parent), str(folder / "src")]
    (site / "editable.pth").write_text("\n".join([*installed, "import _hook"]) + "\n")
    return folder / ".venv/bin/python"


def test_a_project_that_leans_on_much_is_rebuilt_from_what_was_recorded(project, elaborate):
    kept = project.folder.parent / "kept"
    done = subprocess.run(
        [elaborate, "-m", "onnxbuild", "reproduce", "tiny.yaml", "--only", "reference",
         "--times", "2", "--keep", kept],
        cwd=project.folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "tiny: 1 step, the same bytes in 2 fresh builds" in lines
    assert "not compared" not in done.stdout
    assert lines[-1].startswith("ok: reproduced in ")
    varied = [line for line in lines if line.startswith("build ")]
    assert len(varied) == 2
    for words in (
        "PYTHONHASHSEED 0 -> 1",
        "cores ",
        "another folder, HOME and TMPDIR",
        "TZ UTC -> ",
        "LANG ",
        "umask 022 -> ",
    ):
        assert words in varied[0]
    copy = kept / "round-2/tree" / project.folder.relative_to("/")
    found = sorted(p.relative_to(copy).as_posix() for p in copy.rglob("*") if not p.is_dir())
    assert found == [
        "data/scale.npy", "libs/hooked.py", "models/helper.py", "models/layers/a.txt",
        "models/layers/b.txt", "models/tiny.py", "pyproject.toml", "real/scale.npy",
        "src/listed/__init__.py", "src/listed/parts.py", "tiny.yaml",
    ]  # fmt: skip
    assert (copy / "models/layers/a.txt").read_text() == ""  # its name alone was used


def test_a_terminal_that_is_closed_leaves_no_folder_behind(project, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = "    import time; time.sleep(600 if 'onnxbuild-reproduce' in __file__ else 0)"
    project.edit("models/tiny.py", "    torch.manual_seed(0)", code)
    process = subprocess.Popen(
        [sys.executable, "-m", "onnxbuild", "reproduce", "tiny.yaml", "--only", "export"],
        cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - this process has no threads
    )  # fmt: skip
    deadline_s = time.monotonic() + 300
    while not list(tmp_path.glob("onnxbuild-reproduce-*/**/*.log")):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGHUP
    assert leftovers(tmp_path) == set()
