import os
import socket

import pytest

from onnxbuild.recipe.declared.globs import Glob
from tests.recipe.trees import make_files


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
        (".h*.bin", [".hidden.bin"]),
        ("**/*.bin", ["a.bin", "b.bin", "x/c.bin", "x/y/d.bin"]),
        ("x", ["x/c.bin", "x/y/d.bin"]),
        ("*/*.bin", ["x/c.bin"]),
        ("nothing*", []),
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


def names_of(pattern, folder):
    found = Glob(folder).expand(pattern, folder)
    return [file.relative_to(folder).as_posix() for file in found]


@pytest.fixture
def project(tmp_path):
    """A project with one file of its own, and what tools make next to it."""
    make_files(tmp_path, "x/own.json", "artifacts/FORMAT", "artifacts/out/a/fp32/report.json")
    make_files(tmp_path, "artifacts/cas/sha256/aa/b.json", "x/store/FORMAT", "x/store/out/r.json")
    (tmp_path / "x/store/cas/sha256").mkdir(parents=True)
    make_files(
        tmp_path, "dist/a-1/release.json", "env/pyvenv.cfg", "env/lib/a.json", ".git/b.json"
    )
    make_files(tmp_path, "x/__pycache__/c.json", "x/node_modules/d.json", ".tox/e.json")
    make_files(tmp_path, "x/.pytest_cache/f.json", ".svn/g.json", ".hg/h.json", ".venv/i.json")
    return tmp_path


@pytest.mark.parametrize("pattern", [".", "**/*.json", "x/"])
def test_what_tools_make_is_in_no_glob(project, pattern):
    assert names_of(pattern, project) == ["x/own.json"]


def test_a_folder_that_the_pattern_names_is_meant(project):
    assert names_of("dist/**/*.json", project) == ["dist/a-1/release.json"]
    assert names_of("*/__pycache__/*", project) == ["x/__pycache__/c.json"]
    assert names_of(".git/*", project) == [".git/b.json"]
    make_files(project, "cache/models--a/__pycache__/x.json", "cache/dist/y.json")
    assert names_of("cache", project) == ["cache/dist/y.json"]


@pytest.mark.parametrize("pattern", ["artifacts/out/**", "in"])
def test_a_pattern_that_names_a_store_is_refused(project, pattern):
    (project / "in").symlink_to("artifacts/out")
    with pytest.raises(ValueError, match="is a store, which holds what is built and no inputs"):
        Glob(project).expand(pattern, project)


def test_the_lock_of_a_recipe_is_in_no_glob(tmp_path):
    make_files(tmp_path, "a.yaml", "a.lock", "poetry.lock")
    assert names_of("*", tmp_path) == ["a.yaml", "poetry.lock"]
    assert names_of("a.lock", tmp_path) == ["a.lock"]


def test_what_is_no_file_is_in_no_glob(tmp_path):
    make_files(tmp_path, "own.json")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "null.json").symlink_to("/dev/null")
    (tmp_path / "circle.json").symlink_to("circle.json")
    (tmp_path / "folder.json").symlink_to(".")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket.json"))
        for pattern in ("*.json", ".", "**/*.json"):
            assert names_of(pattern, tmp_path) == ["own.json"]
