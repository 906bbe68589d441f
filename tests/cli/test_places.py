"""Builds wherever a project is and however the command is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import HELPER, MODEL, QUICK, RECIPE, Project

REFERENCE = ("run", "tiny.yaml", "--only", "reference")


def made_in(folder: Path) -> Project:
    made = Project(folder)
    made.write("pyproject.toml", "")
    made.write("tiny.yaml", RECIPE)
    made.write("models/tiny.py", MODEL)
    made.write("models/helper.py", HELPER)
    return made


def tree(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


@pytest.mark.slow
def test_a_path_with_blanks_and_letters_behind_a_link_is_one_project(tmp_path):
    real = made_in(tmp_path / "größe and space")
    link = tmp_path / "link"
    link.symlink_to(real.folder)
    first = real(*REFERENCE)
    assert (first.code, first.ran) == (0, ["reference"])
    again = Project(link)(*REFERENCE)
    assert (again.code, again.ran) == (0, [])
    real.edit("models/helper.py", "ReLU", "GELU")
    assert Project(link)(*REFERENCE).ran == ["reference"]
    assert real(*REFERENCE).ran == []


@pytest.mark.slow
def test_what_an_error_says_to_write_is_right_from_a_folder_below(tmp_path):
    project = made_in(tmp_path / "project")
    below = Project(project.folder / "models")
    reference = ("run", "../tiny.yaml", "--only", "reference")
    project.write("data.txt", "1")
    read = "    open(__file__.replace('models/tiny.py', 'data.txt')).read()\n"
    project.edit("models/tiny.py", "    torch.manual_seed", f"{read}    torch.manual_seed")
    undeclared = below(*reference)
    assert undeclared.code == 5
    assert "at tiny.yaml (" in undeclared.out
    assert "`files: [data.txt]`" in undeclared.out
    typo = below("run", "../tiny.yaml", "--only", "nothing").err
    assert "to see all: onnxbuild graph ../tiny.yaml\n" in typo
    assert below("report", "../tiny.yaml").err.endswith("fix: onnxbuild run ../tiny.yaml\n")

    project.write("models/tiny.py", "import os\n\n\ndef load():\n    os.abort()\n")
    again = "fix: to try it again: onnxbuild run {} --only {}\n"
    assert again.format("../tiny.yaml", "reference") in below(*reference).out
    base = RECIPE.replace("models/", "../models/").replace("name: tiny\n", "")
    project.write(
        "bases/base.yaml", base + QUICK
    )  # its section `export` is the place of that step
    project.write("kid.yaml", "version: 1\nextends: bases/base.yaml\nname: kid\n")
    kid = project("run", "kid.yaml", "--only", "export")
    assert again.format("kid", "export") in kid.out


def test_the_first_run_says_where_the_store_is_and_git_does_not_see_it(cheap):
    (cheap.folder / "pyproject.toml").unlink()
    cheap.write("recipes/tiny.yaml", RECIPE.replace("models/", "../models/"))
    stray = cheap("run", "recipes/tiny.yaml", "--only", "reference")
    assert f"new store: {cheap.folder}/recipes/artifacts (no folder above has pyp" in stray.out
    subprocess.run(["git", "init", "-q"], cwd=cheap.folder, check=True)
    first = cheap("run", "recipes/tiny.yaml", "--only", "reference")
    assert f"new store: {cheap.folder}/artifacts (the project's root is the nearest" in first.out
    assert "with .git)" in first.out
    assert "new store" not in cheap("run", "recipes/tiny.yaml", "--only", "reference").out
    seen = subprocess.run(
        ["git", "status", "--porcelain", "-uall"],
        cwd=cheap.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "artifacts" not in seen.stdout


def test_a_store_elsewhere_leaves_the_project_untouched(cheap, tmp_path):
    before = tree(cheap.folder)
    arguments = (*REFERENCE, "--store", "../other store")
    assert cheap(*arguments).ran == ["reference"]
    assert tree(cheap.folder) == before
    again = cheap(*arguments)
    assert (again.code, again.ran) == (0, [])
    by_variable = cheap(*REFERENCE, env={"ONNXBUILD_STORE": str(tmp_path / "other store")})
    assert (by_variable.code, by_variable.ran) == (0, [])


@pytest.mark.slow
def test_a_project_that_cant_be_written_builds_into_a_store_elsewhere(project, tmp_path):
    bind = ["mount", "--bind", project.folder, project.folder]
    done = subprocess.run(bind, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a folder can't be mounted here: {done.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", project.folder], check=True)
        first = project(*REFERENCE, "--store", str(tmp_path / "store"))
        assert (first.code, first.ran) == (0, ["reference"])
        assert "Read-only file system" in project(*REFERENCE).err
    finally:
        subprocess.run(["umount", project.folder], check=True)


@pytest.mark.slow
def test_the_callers_surroundings_do_not_count(project, tmp_path):
    """Neither modules in PYTHONPATH that the project has, too, nor -O, nor a missing HOME."""
    (tmp_path / "hostile").mkdir()
    for name in ("helper", "tiny"):
        (tmp_path / "hostile" / f"{name}.py").write_text("raise SystemExit('hostile')")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path / "hostile"),
        "PYTHONOPTIMIZE": "2",
        "PYTHONHASHSEED": "7",
    }
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "onnxbuild", *REFERENCE],
        cwd=project.folder,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    again = project(*REFERENCE, env={"PYTHONPATH": environment["PYTHONPATH"]})
    assert (again.code, again.ran) == (0, [])


def test_gc_and_verify_leave_a_store_that_a_run_can_use(cheap):
    assert cheap(*REFERENCE).code == 0
    assert cheap("cache", "verify").out.startswith("ok: ")
    collected = cheap("cache", "gc", "--keep-days", "0", "--grace-hours", "0")
    assert collected.code == 0
    assert "removed 1 result, 1 blob and " in collected.out
    again = cheap(*REFERENCE)
    assert (again.code, again.ran) == (0, ["reference"])
