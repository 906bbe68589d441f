"""`doctor` gives each problem with the command that mends it."""

import re

import pytest

from onnxbuild.cli.main import run_command
from tests.cli.conftest import CheapProject, Project
from tests.fakes.cheap_kinds import KINDS
from tests.pseudo_terminal import terminal
from tests.terminal import Terminal


def problems(text: str) -> str:
    return text[text.index("problem: ") :]


FAULTY = """\
problem: a plug-in is faulty: tools/mine.py:1: the plug-in raises ModuleNotFoundError when it is imported: No module named 'no_such_module'
  fix: mend tools/mine.py, or take it out of `plugins` in pyproject.toml
"""
FAULTY_ON_80 = """\
problem: a plug-in is faulty: tools/mine.py:1: the plug-in raises
         ModuleNotFoundError when it is imported: No module named
         'no_such_module'
  fix: mend tools/mine.py, or take it out of `plugins` in pyproject.toml
"""


def test_a_faulty_plug_in_says_what_to_do(cheap: CheapProject, monkeypatch):
    cheap.write("tools/mine.py", "import no_such_module\n")
    cheap.write("pyproject.toml", '[tool.onnxbuild]\nplugins = ["tools/mine.py"]\n')
    seen = cheap("doctor")
    assert (seen.code, problems(seen.out)) == (1, FAULTY)
    monkeypatch.chdir(cheap.folder)
    with terminal(80) as screen:
        assert run_command(["doctor"], KINDS) == 1
    assert problems(screen.text) == FAULTY_ON_80


@pytest.mark.slow
def test_an_onnxruntime_that_can_not_be_imported_says_what_to_type(project: Project, monkeypatch):
    project.write("broken/onnxruntime/__init__.py", "raise ImportError('libfoo.so is missing')\n")
    monkeypatch.setenv("PYTHONPATH", str(project.folder / "broken"))
    said = (
        "problem: onnxruntime can't be imported: libfoo.so is missing\n"
        "  fix: PYTHON -m pip install --force-reinstall onnxruntime\n"
    )
    seen = project("doctor")
    assert (seen.code, with_python_named(problems(seen.out))) == (1, said)
    shown = Terminal(
        ("doctor",), project.folder, columns=300
    )  # the path to Python is long somewhere
    try:
        assert shown.end() == 1
    finally:
        shown.close()
    assert with_python_named(problems(shown.final)) == said


def with_python_named(text: str) -> str:
    return re.sub(r"\S+/python\S*", "PYTHON", text)


@pytest.mark.slow
def test_each_missing_program_and_package_has_its_command(project: Project):
    seen = project("doctor", env={"PATH": str(project.folder)})
    lines = seen.out.splitlines()
    for name, package in (("c++", "g++"), ("node", "nodejs"), ("npm", "npm")):
        line = next(n for n, each in enumerate(lines) if each.startswith(f"{name:<13}"))
        if "none" in lines[line] or lines[line].split()[1] == "no":
            assert lines[line + 1] == f"               fix: apt-get install {package}"


FULL = """\
problem: only 0.0 GiB free for the store
  fix: onnxbuild cache gc --store disk0 --keep-days 7, or run with --store FOLDER on another disk
"""
FULL_ON_80 = """\
problem: only 0.0 GiB free for the store
  fix: onnxbuild cache gc --store disk0 --keep-days 7, or run with --store
       FOLDER on another disk
"""


def test_a_full_disk_says_what_makes_room(cheap: CheapProject, disk, monkeypatch):
    disk("1m")
    seen = cheap("doctor", "--store", "disk0")
    assert (seen.code, problems(seen.out)) == (1, FULL)
    monkeypatch.chdir(cheap.folder)
    with terminal(80) as screen:
        assert run_command(["doctor", "--store", "disk0"], KINDS) == 1
    assert problems(screen.text) == FULL_ON_80
