"""`doctor` gives each problem with the command that mends it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

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
def test_no_line_of_it_is_broken_in_a_word(cheap: CheapProject, monkeypatch):
    plain = cheap("doctor").out
    monkeypatch.chdir(cheap.folder)
    with terminal(80) as screen:
        run_command(["doctor"], KINDS)
    assert any(len(line) > 80 for line in plain.splitlines())
    assert all(sys.executable in line or "/" in line for line in screen.broken), screen.broken
    if not screen.broken:  # paths of this machine may be longer than the terminal is wide
        assert _words(screen.text) == _words(plain)


def _words(text: str) -> list[str]:
    """All words but those of the line that says how much space is left."""
    return [word for line in text.splitlines() if "GiB free" not in line for word in line.split()]


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


def interpreter_without(package: str, folder: Path) -> str:
    """A virtual environment that has all packages of this one but one; returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for each in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if each.name.partition("-")[0] != package:
            (site / each.name).symlink_to(each)
    return str(folder / "bin/python")


LACKING = """\
problem: the package 'onnxscript' is not installed
  fix: PYTHON -m pip install onnxscript
"""


@pytest.mark.slow
def test_a_missing_package_says_what_to_type(project: Project, tmp_path, monkeypatch):
    lacking = interpreter_without("onnxscript", tmp_path / "p")
    done = subprocess.run(
        [lacking, "-m", "onnxbuild", "doctor"],
        cwd=project.folder, env={**os.environ, **project.cache}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "onnxscript   not installed\n" in done.stdout, done.stdout + done.stderr
    said = problems(done.stdout).replace(lacking, "PYTHON")
    assert (done.returncode, said) == (1, LACKING)
    monkeypatch.setattr(sys, "executable", lacking)
    shown = Terminal(("doctor",), project.folder)
    try:
        assert shown.end() == 1
    finally:
        shown.close()
    on_80 = problems(shown.final).replace("\n", "").replace(lacking, "PYTHON")
    assert on_80.split() == LACKING.split()  # the path to Python may be longer than the line
