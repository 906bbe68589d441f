"""Links that a step makes where it works, to files of the project: what is meant is the file."""

from pathlib import Path

import pytest

from onnxbuild.adapters.observe.sighted_paths import SightedPaths
from onnxbuild.adapters.sandbox.own_project import OwnProject


@pytest.fixture
def world(tmp_path):
    """(paths, project, the project's mirror, temporary folder under its short name)."""
    project, job = tmp_path / "project", tmp_path / "job"
    (job / "temp").mkdir(parents=True)
    project.mkdir()
    (project / "w.npy").write_bytes(b"weights")
    mirror = OwnProject(job, project)
    mirror.lay((), left_out=())
    (tmp_path / "short").symlink_to(job)
    paths = SightedPaths(job=str(job), project=str(project), unseen=(), software=())
    return paths, project, Path(mirror.folder), tmp_path / "short" / "temp"


@pytest.mark.parametrize("place", [2, 3])
def test_a_link_of_the_step_s_own_means_the_file_that_it_leads_to(world, place):
    paths, project = world[:2]
    link = world[place] / "link.npy"
    link.symlink_to(project / "w.npy")
    asked, real, _ = paths.resolved(str(link), follows=True)
    assert asked == real == str(project / "w.npy")


def test_a_link_of_the_project_s_own_is_what_it_is_called_there(world):
    paths, project, mirror, _ = world
    (project / "alias.npy").symlink_to("w.npy")
    (mirror / "alias.npy").symlink_to(project / "alias.npy")  # as the mirror is laid
    asked, real, _ = paths.resolved(str(mirror / "alias.npy"), follows=True)
    assert (asked, real) == (str(project / "alias.npy"), str(project / "w.npy"))


def test_what_the_step_made_itself_is_none_of_its_inputs(world):
    paths, _, mirror, temp = world
    for folder in (mirror, temp):
        (folder / "made").write_bytes(b"")
        assert paths.resolved(str(folder / "made"), follows=True)[0] is None
