"""What is watched where no build was good yet."""

from __future__ import annotations

from onnxbuild.building.request import Request
from onnxbuild.watching.child import _inputs
from tests.cli.conftest import make_project


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
