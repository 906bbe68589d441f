"""One failure is one message: the words that a person reads, on a terminal of 80 columns and without one."""

import pytest

from tests.cli.conftest import Project, make_project
from tests.terminal import Terminal
from tests.warm_commands import run as run_command_of

pytestmark = pytest.mark.slow

FAILS = "raise ValueError('no weights')"
SAID = """\
FAILED  tiny:export: models/tiny.py:load raised ValueError: no weights
        at models/tiny.py:6
        fix: run it by itself: the error is raised by the model's own code
        6 steps depend on it
        its log: onnxbuild log tiny:export
FAILED  tiny:reference: for the same reason
FAILED (exit code 1): 0 built, 0 cached, 2 failed, 6 not run
"""


@pytest.fixture
def project(tmp_path) -> Project:
    return make_project(tmp_path / "project")


def quiet(project: Project, *arguments: str) -> str:
    """What `run` prints without --verbose, and without a terminal."""
    import os

    done = run_command_of(
        ("run", *arguments), project.folder, {**os.environ, **project.cache}, 120
    )
    return done.out + done.err


def test_two_steps_that_load_the_same_broken_module_are_one_message(project):
    made = quiet(project, "tiny.yaml", "--only", "export", "--set", "opset=16")  # the store
    assert "new store: " in made
    project.edit("models/tiny.py", "    torch.manual_seed(0)", f"    {FAILS}")
    one_by_one = ("tiny.yaml", "--keep-going", "--jobs", "1")
    assert quiet(project, *one_by_one) == SAID
    terminal = Terminal(("run", *one_by_one), project.folder)
    try:
        assert terminal.end() == 1
    finally:
        terminal.close()
    assert terminal.final == SAID


def test_a_gate_that_fails_is_one_message_with_its_hints_at_the_end(project):
    project.edit("tiny.yaml", "quantization", "validate: {fp32: {atol: 0, rtol: 0}}\nquantization")
    lines = quiet(project, "tiny.yaml").splitlines()
    about = [line for line in lines if "tiny:fp32/validate" in line]
    assert len(about) == 1
    assert about[0].startswith("FAILED  tiny:fp32/validate: ")
    assert lines[-2:] == [
        "to see where it goes wrong: onnxbuild diagnose tiny.yaml:fp32",
        "all verdicts as a page: onnxbuild report tiny.yaml",
    ]
    assert sum("diagnose" in line for line in lines) == 1
    page = project("report", "tiny.yaml")
    assert page.code == 3
    assert "tiny: Don't ship fp32: 1 gate failed" in page.out
