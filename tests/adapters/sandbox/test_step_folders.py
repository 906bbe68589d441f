"""Folders of a step: its home, its mirror of the project, and what it may read."""

import sys
from pathlib import Path

import pytest

from onnxbuild.adapters.sandbox.call_site import own_line
from onnxbuild.adapters.sandbox.fence import fence_of
from onnxbuild.adapters.sandbox.home_folder import lay_home, meant_below_home
from onnxbuild.adapters.sandbox.own_project import OwnProject


def test_a_line_of_the_project_is_reported_relative_to_it():
    assert own_line("/p/models/a.py", 7, "/p") == "models/a.py:7"


def test_lines_of_installed_and_of_generated_code_are_not_the_projects(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # a step's scratch folder may be in the project
    assert own_line("/p/.venv/lib/site-packages/a.py", 7, "/p") == ""
    assert own_line("/q/a.py", 7, "/p") == ""
    assert own_line("<frozen importlib._bootstrap>", 7, str(tmp_path)) == ""


@pytest.fixture
def homes(tmp_path):
    """The real home folder, and where a step's own is to be."""
    real = tmp_path / "real"
    (real / ".cache/hub/models--a--b/refs").mkdir(parents=True)
    (real / ".cache/hub/models--a--b/refs/main").write_text("1")
    (real / ".netrc").write_text("secret")
    return str(real), tmp_path / "own"


def test_only_declared_files_are_in_it(homes, tmp_path):
    real, own = homes
    declared = f"{real}/.cache/hub/models--a--b/refs/main"
    lay_home(own, real, [declared, declared, f"{tmp_path}/elsewhere.txt", f"{real}er/x"])
    found = [path.relative_to(own).as_posix() for path in own.rglob("*") if not path.is_dir()]
    assert found == [".cache/hub/models--a--b/refs/main"]
    assert (own / found[0]).read_text() == "1"


def fail(path: str) -> None:
    raise FileNotFoundError("it is not cached") if path else AssertionError


@pytest.mark.parametrize(("looked_for", "meant"), [(".netrc", ".netrc"), ("nothing", None)])
def test_a_file_that_the_real_one_has_is_what_was_meant(homes, looked_for, meant):
    real, own = homes
    lay_home(own, real, [])
    with pytest.raises(FileNotFoundError) as caught:
        fail(f"{own}/{looked_for}")
    found = meant_below_home(caught.value, str(own), real)
    assert found == (None if meant is None else f"{real}/{meant}")


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


@pytest.fixture
def fence(tmp_path):
    def made(**others):
        project = tmp_path / "project"
        project.mkdir(exist_ok=True)
        nothing = dict.fromkeys(("inputs", "declared", "outside", "code", "hidden"), ())
        return fence_of(project=str(project), scratch=str(tmp_path / "job"), **nothing | others)

    return made


def folder_on_path(tmp_path, monkeypatch, name):
    folder = tmp_path / name
    folder.mkdir(parents=True)
    (folder / "code.py").write_text("")
    (folder / "weights.bin").write_text("")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    return folder


def test_a_folder_of_installed_packages_is_granted_once_and_whole(tmp_path, monkeypatch, fence):
    site = folder_on_path(tmp_path, monkeypatch, "other/site-packages")
    made = fence()
    assert [path for path in made.readable if path.startswith(str(site))] == [str(site)]
    assert made.lists(str(site))
    assert made.allows(str(site / "weights.bin"))


def test_of_another_folder_on_the_path_the_code_is_granted(tmp_path, monkeypatch, fence):
    checkout = folder_on_path(tmp_path, monkeypatch, "checkout")
    made = fence()
    assert [path for path in made.readable if path.startswith(str(checkout))] == [
        str(checkout / "code.py")
    ]
    assert made.lists(str(checkout))
    assert not made.allows(str(checkout / "weights.bin"))


def test_installed_packages_around_a_hidden_folder_are_granted_without_it(
    tmp_path, monkeypatch, fence
):
    site = folder_on_path(tmp_path, monkeypatch, "other/site-packages")
    (site / "store").mkdir()
    (site / "store" / "secret").write_text("")
    made = fence(hidden=[str(site / "store")])
    assert made.allows(str(site / "code.py"))
    assert made.allows(str(site / "weights.bin"))
    assert not made.allows(str(site / "store" / "secret"))
