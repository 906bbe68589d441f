"""The mirror of a project's root that a step works in."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxbuild.adapters.sandbox.own_project import OwnProject


@pytest.fixture
def mirror(tmp_path):
    (tmp_path / "project/weights").mkdir(parents=True)
    (tmp_path / "project/weights/w.txt").write_text("8")
    (tmp_path / "project/artifacts").mkdir()
    (tmp_path / "above.txt").write_text("9")
    made = OwnProject(tmp_path / "job", tmp_path / "project")
    made.lay([str(tmp_path / "above.txt")], left_out=[str(tmp_path / "project/artifacts")])
    return made


def test_each_entry_of_the_root_is_there_but_the_store(mirror):
    assert [path.name for path in Path(mirror.folder).iterdir()] == ["weights"]
    assert (Path(mirror.folder) / "weights/w.txt").read_text() == "8"


def test_a_declared_file_above_the_project_has_its_relative_place(mirror):
    assert (Path(mirror.folder) / "../above.txt").read_text() == "9"


def test_a_path_in_the_mirror_stands_for_one_of_the_project(mirror, tmp_path):
    assert mirror.meant(f"{mirror.folder}/weights/new") == f"{tmp_path}/project/weights/new"
    assert mirror.meant(mirror.folder) == f"{tmp_path}/project"
    above = str(Path(mirror.folder).parent / "above.txt")
    assert mirror.meant(above) == f"{tmp_path}/above.txt"
    assert mirror.meant("/etc/hosts") == "/etc/hosts"


def test_messages_name_files_as_the_code_does(mirror):
    assert mirror.written(f"no {mirror.folder}/weights/x") == "no weights/x"
