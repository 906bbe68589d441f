import tempfile
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.short_temp import ShortName, remove_short_name


@pytest.fixture
def links(tmp_path, monkeypatch):
    """The system's folder of temporary files, of this test's own."""
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def deep(folder: Path) -> Path:
    return folder / ("a" * 60) / "run"


def test_a_short_folder_needs_no_link(links):
    assert ShortName(Path("/a/b")).path == Path("/a/b")
    assert not list(links.iterdir())


def test_a_long_folder_has_a_link_while_it_is_used(links, tmp_path):
    short = ShortName(deep(tmp_path))
    assert (short.path.parent, short.path.readlink()) == (links, deep(tmp_path))
    short.remove()
    assert not list(links.iterdir())


def test_what_a_killed_process_left_is_found_by_the_folders_name_and_nothing_else_is_removed(
    links, tmp_path
):
    ShortName(deep(tmp_path))
    other = ShortName(deep(tmp_path / "b"))
    remove_short_name(deep(tmp_path))
    assert list(links.iterdir()) == [other.path]
    remove_short_name(deep(tmp_path))
    other.remove()
    taken = ShortName(deep(tmp_path)).path
    taken.unlink()
    taken.symlink_to(tmp_path)  # somebody else's, under this name
    remove_short_name(deep(tmp_path))
    assert taken.is_symlink()
    assert ShortName(deep(tmp_path)).path == deep(tmp_path)
