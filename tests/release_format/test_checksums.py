"""A release's own list of checksums, which comes from others as all else in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from onnxbuild.release_format.checksums import check_sums
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
