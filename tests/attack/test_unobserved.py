"""Where the kernel can't be asked: it is said, Python's own watch goes on, and `reproduce` finds the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.building.api import Request
from onnxbuild.building.choices import build_chosen
from onnxbuild.building.wiring import RunOptions, open_workspace
from onnxbuild.reproduction.first_divergence import first_divergence
from onnxbuild.reproduction.fresh_build import build_fresh, copy_project
from onnxbuild.reproduction.recorded_inputs import recorded_inputs
from tests.attack.no_listener import refuse_listeners
from tests.attack.test_unseen_reads import LOOKS, PROGRAMS, Program, writes
from tests.cli.conftest import Project
from tests.fakes.world import RecordingSink
from tests.fork_servers import launcher

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's"),
]
ONLY = ("--only", "reference")
FOUND = {each.what: each for each in PROGRAMS}


def run(project, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "onnxbuild", *arguments],
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=300,
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


SEEN_BY_PYTHON = {
    "listed at import by os.listdir": True,
    "listed at import by ls": False,
    "imported by a forked worker": False,
    "imported by a script": False,
    "a shell's script": False,
    "a link retargeted, read by cat": False,
    "a function's source, by inspect": True,
    "whether a file is there": False,
}
"""Whether Python's own watch records it, too: the record is complete without the kernel."""


def lay(program: Program, project: Project) -> None:
    program.lay(project)
    if program in LOOKS:
        program.edit(project.folder)  # a file that is not there is missing in no copy


def test_reproduce_says_that_a_record_is_not_complete(project):
    """With the search for the cause, which takes half a minute; without it others are tried below."""
    lay(FOUND["imported by a script"], project)
    observed = project("reproduce", "tiny.yaml", *ONLY)
    assert observed.code == 0, observed.out + observed.err
    seen = run(project, "reproduce", "tiny.yaml", *ONLY, "--store", "unobserved")
    assert seen.returncode == 4, seen.stdout + seen.stderr


def differs(project: Project, folder: Path, *, kernel_watch: bool) -> bool:
    """Whether a build in a copy of what was recorded differs: what `reproduce` does, in ordinary surroundings.

    Args:
        project: Is built in a store of its own.
        folder: An empty folder.
        kernel_watch: See RunOptions.
    """
    options = RunOptions(kernel_watch=kernel_watch)
    path = project.folder / "tiny.yaml"
    request = Request((path,), only=("reference",), store=str(folder / "store"))
    request, built = build_chosen(request, options, lay=False)
    assert built.exit_code == 0, built.report.failures
    workspace = open_workspace(request.project, built.store)
    try:
        recorded = recorded_inputs(built, request.project, workspace.fingerprints.places())
    finally:
        workspace.close()
    copy = copy_project(request.project, recorded, folder / "copy", built)
    fresh = build_fresh(request, built.graph.steps, copy, options, RecordingSink())
    return first_divergence(built.graph, built.report, fresh.report) is not None


@pytest.mark.parametrize("what", SEEN_BY_PYTHON)
def test_a_copy_of_what_was_recorded_is_whole_only_if_the_kernel_observes(
    project, tmp_path, monkeypatch, what
):
    """The same for each way of reading, without the search for the cause."""
    monkeypatch.setattr(sys, "executable", launcher(sys.executable))  # one load of torch for all
    lay(FOUND[what], project)
    assert not differs(project, tmp_path / "observed", kernel_watch=True)
    unobserved = differs(project, tmp_path / "unobserved", kernel_watch=False)
    assert unobserved != SEEN_BY_PYTHON[what]
