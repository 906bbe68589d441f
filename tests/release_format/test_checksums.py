"""A release's own list of checksums, which comes from others as all else in it."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.layout import SUMS_FILE
from onnxbuild.release_format.released import check_is_release


def test_a_pipe_in_the_place_of_the_checksums_is_a_fault_and_no_wait(tmp_path: Path):
    os.mkfifo(tmp_path / SUMS_FILE)
    writer = Thread(target=(tmp_path / SUMS_FILE).write_bytes, args=(b"",), daemon=True)
    writer.start()  # so that a reader would find an empty file, and this test would end
    said = [str(each) for each in check_sums(tmp_path).faults]
    check_is_release(tmp_path, tmp_path)
    assert f"{SUMS_FILE} can't be read" in said
    os.close(os.open(tmp_path / SUMS_FILE, os.O_RDONLY | os.O_NONBLOCK))  # the writer may end
