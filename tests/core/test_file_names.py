"""Names that a store says: those that stay below a folder are taken, all others are refused."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.file_names import (
    check_file_name,
    check_file_names,
    check_names_everywhere,
    check_part,
)
from onnxbuild.core.graph import Deliverable

PARTS = st.lists(st.sampled_from(["a", "model.onnx", "..", ".", "", "/", "\\", "\0", "C:", "…"]))
DIGEST = Digest.of(b"")


@pytest.mark.parametrize("name", ["model.onnx", "..hidden", "ab:c", "aux"])
def test_a_name_below_the_folder_is_taken(name):
    assert check_file_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "/a",
        "//a",
        "a/",
        "a//b",
        "a/./b",
        "a/../b",
        "../a",
        "a\\b",
        "a\0",
        "C:/a",
        "a:",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(ValueError, match=r"is not the name of a file|starts with a drive"):
        check_file_name(name)


@given(PARTS)
def test_whatever_is_taken_stays_below_its_folder(parts):
    name = "/".join(parts)
    try:
        check_file_name(name)
    except ValueError:
        return
    joined = posixpath.join("/folder", name)
    assert posixpath.normpath(joined) == joined
    assert joined.startswith("/folder/")


@pytest.mark.parametrize("names", [["a", "a"], ["a/b", "a", "c"]])
def test_two_files_need_two_places(names):
    with pytest.raises(ValueError, match=r"is there twice|is a file and a folder"):
        check_file_names(names)
    with pytest.raises(ValueError, match=r"is there twice|is a file and a folder"):
        Artifact("bundle", tuple((name, DIGEST) for name in names))


@pytest.mark.parametrize(
    "names",
    [
        ["A", "a"],
        ["a/B", "a/b"],
        ["\u00e9", "e\u0301"],
        ["\u00df", "SS"],
        ["A", "a/b"],
        ["a/B/c", "a/b"],
    ],
)
def test_files_for_any_disk_differ_in_more_than_case_and_accents(names):
    check_file_names(names)
    with pytest.raises(ValueError, match="on some disks"):
        check_names_everywhere(names)
    check_names_everywhere(["Model/a", "model/b", "c"])  # one folder at worst


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\\b", "\0"])
def test_a_folder_in_out_has_the_name_of_one_entry(name):
    with pytest.raises(ValueError, match="is not the name of a file"):
        check_part(name)
    for names in ((name, "fp32"), ("bert", name)):
        with pytest.raises(ValueError, match="is not the name of a file"):
            Deliverable(*names, ())


@pytest.mark.parametrize(
    ("sha256", "size"),
    [("a" * 63, 0), ("A" * 64, 0), ("../" + "a" * 61, 0), ("a" * 64 + "\n", 0), ("a" * 64, -1)],
)
def test_a_digest_is_64_hex_digits_and_a_size(sha256, size):
    with pytest.raises(ValueError, match="is not a"):
        Digest(sha256, size)


@pytest.mark.parametrize(
    ("sha256", "size"), [(5, 0), (None, 0), ("a" * 64, True), ("a" * 64, "0")]
)
def test_a_digest_of_other_types_is_none(sha256, size):
    with pytest.raises(TypeError):
        Digest(sha256, size)
