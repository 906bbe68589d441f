"""A copy of a project holds what was recorded, and links lead to the same as before."""

import os
from pathlib import Path

import pytest

from onnxbuild.project_folder import find_project
from onnxbuild.reproduction.fresh_copy import FreshCopy
from onnxbuild.reproduction.recorded_inputs import Recorded


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "home/project"
    (folder / "models").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[project]")
    (folder / "models/a.py").write_text("a = 1")
    (folder / "models/b.py").write_text("b = 1")
    return folder


def copied(project, tmp_path, *, files=(), names=()):
    copy = FreshCopy(project, tmp_path / "fresh")
    absolute = [
        {Path(os.path.normpath(project / each)) for each in group} for group in (files, names)
    ]
    copy.fill(Recorded(*absolute))
    return copy.project


def below(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir())


def test_only_what_is_recorded_is_there(project, tmp_path):
    copy = copied(project, tmp_path, files=["models/a.py"])
    assert below(copy) == ["models/a.py", "pyproject.toml"]
    assert (copy / "models/a.py").read_text() == "a = 1"
    assert (copy / "pyproject.toml").read_text() == ""  # it only marks the root
    assert find_project(copy / "recipes/x.yaml") == copy


def test_where_a_name_alone_counts_the_content_is_left_out(project, tmp_path):
    (project / "data").mkdir()
    copy = copied(project, tmp_path, names=["models/b.py", "data", "gone.txt"])
    assert (copy / "models/b.py").read_text() == ""
    assert (copy / "data").is_dir()
    assert not (copy / "gone.txt").exists()


def test_links_inside_the_project_lead_into_the_copy(project, tmp_path):
    (project / "shared").symlink_to("models")
    (project / "c.py").symlink_to(project / "models/a.py")
    copy = copied(project, tmp_path, files=["shared/b.py", "c.py"])
    assert below(copy) == ["c.py", "models/a.py", "models/b.py", "pyproject.toml"]
    assert (copy / "c.py").resolve() == copy / "models/a.py"
    assert (copy / "shared").resolve() == copy / "models"


def test_links_out_of_the_project_lead_where_they_did(project, tmp_path):
    outside = tmp_path / "elsewhere.bin"
    outside.write_bytes(b"1")
    (project / "data.bin").symlink_to("../../elsewhere.bin")
    copy = copied(project, tmp_path, files=["data.bin"])
    assert (copy / "data.bin").resolve() == outside


def test_relative_paths_out_of_the_project_work_in_the_copy(project, tmp_path):
    (tmp_path / "home/base.yaml").write_text("version: 1")
    (tmp_path / "home/weights.bin").write_bytes(b"1")
    copy = copied(project, tmp_path, files=["../base.yaml", "../weights.bin"])
    assert (copy / "../base.yaml").read_text() == "version: 1"
    assert not (copy.parent / "base.yaml").is_symlink()  # its own relative paths lead on
    assert (copy.parent / "weights.bin").readlink() == tmp_path / "home/weights.bin"


def test_an_environment_in_the_project_is_at_its_place_and_stays_as_it_is(project, tmp_path):
    (project / "venv/bin").mkdir(parents=True)
    (project / "venv/pyvenv.cfg").touch()
    for name in ("venv/bin/python", "tools/bin/python"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    copy = FreshCopy(project, tmp_path / "fresh")
    for interpreter in ("venv/bin/python", "tools/bin/python", "../python"):
        copy.link_environment(Path(os.path.normpath(project / interpreter)))
    before = below(project)
    copy.fill(Recorded({project / "models/a.py"}, {project / "venv/bin"}))
    assert (copy.project / "venv").readlink() == project / "venv"
    assert (copy.project / "tools/bin/python").readlink() == project / "tools/bin/python"
    assert not (copy.project.parent / "python").is_symlink()
    assert below(project) == before
