"""`doctor` gives each problem with the command that mends it."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import CheapProject, Project


def problems(text: str) -> list[str]:
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("problem: "))
    return lines[first:]


@pytest.mark.parametrize("columns", ["80", ""])
def test_a_faulty_plug_in_says_what_to_do(cheap: CheapProject, columns: str):
    cheap.write("tools/mine.py", "import no_such_module\n")
    cheap.write("pyproject.toml", '[tool.onnxbuild]\nplugins = ["tools/mine.py"]\n')
    seen = cheap("doctor", env={"COLUMNS": columns} if columns else None)
    assert seen.code == 1
    what, fix = problems(seen.out)
    assert what.startswith("problem: a plug-in is faulty: ")
    assert "no_such_module" in what
    assert fix.startswith("  fix: ")
    assert len(fix) > len("  fix: ")


@pytest.mark.slow
def test_an_onnxruntime_that_can_not_be_imported_says_what_to_type(project: Project):
    project.write("broken/onnxruntime/__init__.py", "raise ImportError('libfoo.so is missing')\n")
    seen = project("doctor", env={"PYTHONPATH": str(project.folder / "broken")})
    assert seen.code == 1
    what, fix = problems(seen.out)
    assert what == "problem: onnxruntime can't be imported: libfoo.so is missing"
    assert re.fullmatch(r"  fix: \S+/python\S* -m pip install --force-reinstall onnxruntime", fix)


@pytest.mark.slow
def test_each_missing_program_and_package_has_its_command(project: Project):
    seen = project("doctor", env={"PATH": str(project.folder)})
    lines = seen.out.splitlines()
    for name, package in (("c++", "g++"), ("node", "nodejs"), ("npm", "npm")):
        line = next(n for n, each in enumerate(lines) if each.startswith(f"{name:<13}"))
        if "none" in lines[line] or lines[line].split()[1] == "no":
            assert lines[line + 1] == f"               fix: apt-get install {package}"
