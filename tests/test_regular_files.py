import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.regular_files import read_user_file


def test_files_are_read_whole_also_through_links(tmp_path):
    (tmp_path / "file").write_bytes(b"1" * 100_000)
    (tmp_path / "link").symlink_to("file")
    assert read_user_file(tmp_path / "link") == b"1" * 100_000


def test_what_may_have_no_end_is_an_error_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(OSError, match="it is a pipe or a device; expected a file"):
            read_user_file(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read_user_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_user_file(tmp_path / "gone")


def test_a_pipe_that_the_shell_hands_over_is_read():
    code = "from onnxbuild.regular_files import *; print(read_user_file(Path('/dev/stdin')))"
    python = [sys.executable, "-c", code]
    done = subprocess.run(python, input=b"1", capture_output=True, check=True)
    assert done.stdout == b"b'1'\n"
    assert Path("/dev/stdin").exists()
