"""Saves as editors make them, new files, and what is no change."""

import os
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.watch.changes import Changes, now_ns, sources_below
from onnxbuild.building.request import Request
from onnxbuild.watching.child import _inputs
from tests.cli.conftest import make_project


@pytest.fixture
def watched(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models/tiny.py").write_text("a")
    (tmp_path / "tiny.yaml").write_text("a")
    time.sleep(0.05)  # they were saved before
    changes = Changes(str(tmp_path / "artifacts"))
    paths = [tmp_path, tmp_path / "tiny.yaml", tmp_path / "models", tmp_path / "models/tiny.py"]
    changes.watch(map(str, paths), now_ns())
    assert changes.found() == []
    return tmp_path, changes


def names(folder: Path, changes: Changes) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in changes.settled([]))


def test_a_file_that_is_written_removed_or_replaced_has_changed(watched):
    folder, changes = watched
    (folder / "tiny.yaml").write_text("b")
    assert names(folder, changes) == ["tiny.yaml"]
    assert names(folder, changes) == []
    (folder / ".tiny.yaml.new").write_text("c")
    (folder / ".tiny.yaml.new").replace(folder / "tiny.yaml")  # as most editors save
    assert names(folder, changes) == ["tiny.yaml"]
    (folder / "tiny.yaml").unlink()
    assert names(folder, changes) == ["tiny.yaml"]


def test_a_new_file_is_named_and_what_editors_and_builds_leave_is_not(watched):
    folder, changes = watched
    for name in ("models/.tiny.py.swp", "models/tiny.py~", "models/#tiny.py#", ".hidden"):
        (folder / name).write_text("")
    (folder / "models/__pycache__").mkdir()
    (folder / "artifacts").mkdir()
    assert names(folder, changes) == []
    (folder / "models/helper.py").write_text("")
    assert names(folder, changes) == ["models/helper.py"]


@pytest.fixture
def built(tmp_path):
    """A folder, and the time at which its first build began."""
    for name in (
        "early.py",
        "late.py",
        "copied.py",
        "models/tiny.py",
        "gone/tiny.py",
        "still/a.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    time.sleep(0.05)
    began = now_ns()
    time.sleep(0.05)

    def changed(*paths):
        changes = Changes(str(tmp_path / "artifacts"))
        changes.watch([str(tmp_path / each) for each in paths], began)
        return names(tmp_path, changes)

    return tmp_path, changed


def test_a_file_that_was_saved_while_the_first_build_read_it_has_changed(built):
    folder, changed = built
    (folder / "late.py").write_text("saved while it was built")
    (folder / "copied.py").write_text("with an old date, as by cp -p")
    os.utime(folder / "copied.py", ns=(10**18, 10**18))
    assert changed("early.py", "late.py", "copied.py") == ["copied.py", "late.py"]


def test_what_a_build_makes_in_a_folder_is_no_change_of_it(built):
    folder, changed = built
    (folder / "artifacts").mkdir()
    (folder / "models/__pycache__").mkdir()
    (folder / "models/.tiny.py.swp").write_text("")
    assert changed(".", "models") == []


def test_sources_are_those_of_the_project_alone(tmp_path):
    for name in ("a.py", "r/b.yaml", "r/c.npz", ".git/x.py", "venv/lib/y.py", "store/z.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("")
    (tmp_path / "venv/pyvenv.cfg").write_text("")
    (tmp_path / "store/index.db").write_text("")
    found = [os.path.relpath(path, tmp_path) for path in sources_below(str(tmp_path))]
    assert found == [".", "a.py", "r", "r/b.yaml"]
    assert len(sources_below(str(tmp_path), most=2)) == 2


def test_declared_files_are_watched_before_a_build_was_good(tmp_path):
    project = make_project(tmp_path / "project")
    project.write("weights/tiny.npz", "broken")
    entrypoint = "model: {entrypoint: models/tiny.py:load"
    project.edit("tiny.yaml", entrypoint, f"{entrypoint}, files: [weights/tiny.npz]")
    request = Request((project.folder / "tiny.yaml",))
    watched = _inputs(request, whole=False)
    for name in ("tiny.yaml", "models/tiny.py", "weights", "weights/tiny.npz"):
        assert str(project.folder / name) in watched
    project.edit("tiny.yaml", "version: 1", "version: [")
    assert str(project.folder / "models/tiny.py") in _inputs(request, whole=False)
