"""A release's own list of checksums, which comes from others as all else in it."""

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import NotReproducibleError
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.forms import sums
from onnxbuild.release_format.layout import SUMS_FILE
from onnxbuild.release_format.released import check_is_release


@pytest.fixture
def piped(tmp_path) -> Iterator[Path]:
    """A folder with a pipe for its checksums; one who reads it finds nothing, and does not wait."""
    pipe = tmp_path / SUMS_FILE
    os.mkfifo(pipe)
    Thread(target=pipe.write_bytes, args=(b"",), daemon=True).start()
    yield tmp_path
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))  # the writer may end


def test_a_pipe_in_the_place_of_the_checksums_is_a_fault(piped):
    assert [str(each) for each in check_sums(piped).faults] == [
        f"{SUMS_FILE} is neither a file nor a folder"
    ]


def test_a_pipe_in_the_place_of_the_checksums_may_be_that_of_a_release(piped):
    check_is_release(piped, piped)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines.removesuffix(b"\n"),
        lambda lines: b"".join(reversed(lines.splitlines(keepends=True))),
    ],
    ids=["no last newline", "another order"],
)
def test_checksums_that_are_right_but_not_those_that_a_release_writes_are_a_fault(
    tmp_path, change
):
    files = {"a.txt": b"a", "b.txt": b"b"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    written = sums({name: Digest.of(content) for name, content in files.items()})
    (tmp_path / SUMS_FILE).write_bytes(written)
    assert check_sums(tmp_path).faults == ()
    (tmp_path / SUMS_FILE).write_bytes(change(written))
    (fault,) = check_sums(tmp_path).faults
    assert str(fault) == f"{SUMS_FILE} names these files in other bytes than a release has"


def faults_of(folder: Path, files: dict[str, bytes]) -> list[str]:
    """What is wrong with a folder of these files, all of them summed."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / SUMS_FILE).write_bytes(sums({n: Digest.of(c) for n, c in files.items()}))
    return [str(each) for each in check_sums(folder).faults]


@pytest.mark.parametrize("name", [".git/config", "a/.envrc", "variants/fp32/numpy.py", "HEAD"])
def test_a_file_that_a_tool_would_run_by_itself_is_a_fault(tmp_path, name):
    (fault,) = faults_of(tmp_path, {name: b"[core]\n fsmonitor = touch /tmp/run\n"})
    assert fault.startswith(f"{SUMS_FILE} names files that no release has: '{name}' ")


def test_a_folder_that_is_deeper_than_any_release_is_not_followed(tmp_path):
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / SUMS_FILE).write_bytes(b"")
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("a", dir_fd=descriptor)
        inner = os.open("a", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    (fault,) = check_sums(folder).faults
    assert str(fault).endswith("a path has at most 32 parts and 1,024 characters")


@pytest.mark.slow
def test_more_files_than_any_release_has_are_not_listed_to_the_end(tmp_path):
    for number in range(10_001):
        os.mknod(tmp_path / str(number))
    (fault,) = check_sums(tmp_path).faults
    assert "there are 10,001 files; expected at most 10,000" in str(fault)


def test_a_sparse_file_is_refused_by_its_size_before_anything_is_read(tmp_path):
    with (tmp_path / "model.onnx").open("wb") as file:
        file.truncate(8 << 40)
    (fault,) = faults_of(tmp_path, {"release.json": b'{"lock": "recipe/x.lock"}'})
    assert str(fault) == (
        "model.onnx has 8,796,093,022,208 bytes; its lock names no output of more than 268,435,456"
    )
    assert check_sums(tmp_path).digests == {}


@pytest.mark.parametrize("name", [SUMS_FILE, "release.json"])
def test_a_text_of_many_bytes_is_not_read_into_memory(tmp_path, name):
    """Small enough to be hashed, and too large for what a release says of itself."""
    faults_of(tmp_path, {"release.json": b"{}"})
    os.truncate(tmp_path / name, 17 << 20)
    files = check_sums(tmp_path)
    assert files.faults
    with pytest.raises(
        NotReproducibleError, match="17,825,792 bytes; expected at most 16,777,216"
    ):
        files.read(name)


def test_a_file_that_is_exchanged_after_it_was_hashed_is_found(tmp_path):
    assert faults_of(tmp_path, {"a.txt": b"sound", "b.txt": b"b"}) == []
    files = check_sums(tmp_path)
    assert files.changed() == ()
    kept = tmp_path.parent / "kept"
    (tmp_path / "a.txt").rename(kept)
    (tmp_path / "a.txt").write_bytes(b"forged")
    with pytest.raises(NotReproducibleError, match="was changed while it was checked"):
        files.read("a.txt")
    kept.rename(tmp_path / "a.txt")
    assert files.read("a.txt") == b"sound"
    assert [str(each) for each in files.changed()] == ["a.txt was changed while it was checked"]
