"""New files come all or not at all, and never over what is there."""

from pathlib import Path

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.first_recipe.init import put_files
from tests.first_recipe.conftest import files_in


def test_after_a_file_that_exists_nothing_of_the_others_is_left(tmp_path):
    (tmp_path / "b").write_text("mine")
    files = {tmp_path / "new/deep/a": "1", tmp_path / "b": "2", tmp_path / "c": "3"}
    with pytest.raises(UsageError, match="b exists, and nothing is overwritten"):
        put_files(files)
    assert files_in(tmp_path) == {"b"}
    assert (tmp_path / "b").read_text() == "mine"


def test_files_are_whole_and_no_draft_is_left(tmp_path):
    put_files({tmp_path / "x/a": "ä\n", tmp_path / "x/b": ""})
    assert files_in(tmp_path) == {"x", "x/a", "x/b"}
    assert (tmp_path / "x/a").read_bytes() == "ä\n".encode()


def test_a_place_that_takes_no_file_is_named_as_it_was_asked_for():
    with pytest.raises(UsageError, match=r"^can't write /proc/x\.yaml: No such file"):
        put_files({Path("/proc/x.yaml"): "1"})
