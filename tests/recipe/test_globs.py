from __future__ import annotations

import pytest

from onnxbuild.recipe.globs import Glob


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "pro[j]ect"
    for name in ("a.bin", "b.bin", ".hidden.bin", "x/c.bin", "x/y/d.bin", ".git/e.bin"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a.bin", ["a.bin"]),
        ("*.bin", ["a.bin", "b.bin"]),
        ("[a-b].bin", ["a.bin", "b.bin"]),
        ("?.bin", ["a.bin", "b.bin"]),
        (".h*.bin", [".hidden.bin"]),
        ("**/*.bin", ["a.bin", "b.bin", "x/c.bin", "x/y/d.bin"]),
        ("**/**/d.bin", ["x/y/d.bin"]),
        ("x/**", ["x/c.bin", "x/y/d.bin"]),
        ("x", ["x/c.bin", "x/y/d.bin"]),
        ("*/*.bin", ["x/c.bin"]),
        ("x/../a.bin", ["a.bin"]),
        ("*", ["a.bin", "b.bin"]),
        ("nothing*", []),
        ("nowhere/*", []),
        ("missing.bin", []),
    ],
)
def test_a_pattern_names_sorted_files(tree, pattern, found):
    expanded = Glob().expand(pattern, tree)
    assert [file.relative_to(tree).as_posix() for file in expanded] == found


def test_the_folders_whose_listing_decided_are_remembered(tree):
    glob = Glob()
    glob.expand("x/**/*.bin", tree)
    assert set(glob.folders) == {tree / "x", tree / "x/y"}
    glob.expand("missing.bin", tree)
    assert tree in glob.folders


def test_links_are_remembered_since_their_targets_may_come_and_go(tree):
    (tree / "link.bin").symlink_to("not-yet.bin")
    (tree / "other.txt").symlink_to("not-yet.bin")
    for pattern in ("*.bin", "link.bin"):
        glob = Glob()
        glob.expand(pattern, tree)
        assert set(glob.folders) == {tree, tree / "link.bin"}


def test_a_link_to_a_folder_above_is_no_loop(tree):
    (tree / "x/loop").symlink_to(tree)
    assert len(Glob().expand("**/*.bin", tree)) == 4


def test_impossible_patterns_are_value_errors(tree):
    for pattern in ("a\0b", "*/../a.bin"):
        with pytest.raises(ValueError, match=r"NUL|can't follow"):
            Glob().expand(pattern, tree)
