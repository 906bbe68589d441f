"""A release's own list of checksums, which comes from others as all else in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from onnxbuild.core.digest import Digest
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
    assert f"{SUMS_FILE} can't be read" in [str(each) for each in check_sums(piped).faults]


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
