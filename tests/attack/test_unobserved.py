"""Where the kernel can't be asked: it is said, Python's own watch goes on, and `reproduce` finds the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.attack.no_listener import refuse_listeners
from tests.attack.test_unseen_reads import CHILDREN, LINKS, LISTINGS, LOOKS, Program, writes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's"),
]
ONLY = ("--only", "reference")
FOUND = {each.what: each for each in (*LISTINGS, *CHILDREN, *LINKS, *LOOKS)}


def run(project, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "onnxbuild", *arguments],
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=refuse_listeners,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done


def test_a_run_says_that_the_kernel_observes_nothing_and_python_still_does(project):
    reads = (
        "import part\ndef value():\n    return len(os.listdir(f'{here}/layers')) + part.scale()\n"
    )
    Program("", reads, writes("x", "")).lay(project)
    project.write("models/part.py", "def scale():\n    return 2\n")
    project.write("models/layers/one.py", "")
    first = run(project, "run", "tiny.yaml", *ONLY)
    assert first.returncode == 0, first.stdout
    assert (
        "no seccomp notifications (Operation not permitted): what steps read in child processes and "
        "native code is not recorded" in first.stdout
    )
    assert "run " not in run(project, "run", "tiny.yaml", *ONLY).stdout
    project.write("models/layers/two.py", "")
    assert "file models/layers/" in run(project, "run", "tiny.yaml", *ONLY).stdout
    project.write("models/part.py", "def scale():\n    return 3\n")
    assert "source models/part.py" in run(project, "run", "tiny.yaml", *ONLY).stdout
    assert "no seccomp notifications (Operation not permitted)" in run(project, "doctor").stdout


@pytest.mark.parametrize(
    "what",
    [
        "imported by a script",
        "a link retargeted, read by cat",
        "listed at import by ls",
        "whether a file is there",
    ],
)
def test_reproduce_tells_that_a_record_is_not_complete(project, what):
    program = FOUND[what]
    program.lay(project)
    if what == "whether a file is there":
        program.edit(project.folder)  # a file that is not there is missing in no copy
    observed = project("reproduce", "tiny.yaml", *ONLY)
    assert observed.code == 0, observed.out + observed.err
    seen = run(project, "reproduce", "tiny.yaml", *ONLY, "--store", "unobserved")
    assert seen.returncode == 4, seen.stdout + seen.stderr
