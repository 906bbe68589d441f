"""What a step may read: folders as a whole, and single files where a folder holds more than code."""

from __future__ import annotations

import sys

import pytest

from onnxbuild.adapters.sandbox.fence import fence_of


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
