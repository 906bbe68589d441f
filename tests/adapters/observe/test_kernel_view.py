"""What the kernel reported and what Python recorded, merged into one record."""

from pathlib import Path

import pytest

from onnxbuild.adapters.observe.access_log import SightedPaths
from onnxbuild.adapters.observe.kernel_view import View, merged
from onnxbuild.adapters.sandbox.own_project import OwnProject
from onnxbuild.adapters.toolchain.path_names import PathNames

PYTHON = {"sources": {"models/m.py": "a"}, "data": {}, "listings": {}, "distributions": ["torch"]}
KERNEL = {
    "read": {}, "listed": {}, "looked": {}, "links": {}, "installed": [], "sites_listed": False,
    "devices": False, "refused": {}, "written": {},
}  # fmt: skip


@pytest.fixture
def record(tmp_path):
    names = PathNames(tmp_path, {"<home>": "/home/somebody"})
    view = View(names, lambda _: (), ("data/declared.bin",))

    def record(**reported):
        at = {
            key: {str(tmp_path / path): what for path, what in found.items()}
            if isinstance(found, dict)
            else found
            for key, found in reported.items()
        }
        return merged(PYTHON, {**KERNEL, **at}, view)

    return record


def test_paths_are_recorded_relative_to_the_project_or_a_named_folder(record):
    found = record(read={"a.bin": "1", "/home/somebody/b.bin": "2", "/opt/c.bin": "3"})
    assert found["data"] == {"a.bin": "1", "<home>/b.bin": "2", "/opt/c.bin": "3"}


def test_a_listing_is_recorded_with_a_slash(record):
    assert record(listed={"layers": "1"})["data"] == {"layers/": "1"}


def test_installed_files_count_by_all_their_owners_and_by_themselves_if_they_have_none(tmp_path):
    names = PathNames(tmp_path, {})
    owners = {"/site/a.so": ("one", "two")}
    view = View(names, lambda path: owners.get(path, ()), ())
    found = merged(PYTHON, {**KERNEL, "installed": ["/site/a.so", "/site/own.py"]}, view)
    assert found["distributions"] == ["one", "torch", "two"]
    assert found["data"] == {"/site/own.py": ""}


def test_a_look_at_what_was_used_says_nothing_more(record):
    found = record(
        read={"a.bin": "1"},
        looked={
            "a.bin": "file",
            "models/m.py": "file",
            "models": "folder",
            "data/declared.bin": "file",
            "data": "folder",
            "flag": "absent",
            "empty": "folder",
        },
    )
    assert found["existence"] == {"flag": "absent", "empty": "folder"}


def test_links_are_recorded_with_targets_as_they_are_or_relative_to_named_folders(
    record, tmp_path
):
    found = record(links={"latest": "step1", "weights": f"{tmp_path}/real"})
    assert found["links"] == {"latest": "step1", "weights": "real"}


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
