"""What the operating system refuses to write, in one true sentence."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.atomic_files import store_error, write_atomically
from onnxbuild.adapters.sandbox.uncaught import sentence_of
from onnxbuild.core.errors import StoreError


@pytest.fixture
def file_limit() -> Iterator[None]:
    """`ulimit -f`: no file of this process grows beyond 4 KiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("file_limit")
def test_a_file_larger_than_the_process_may_write_is_said_with_the_limit(tmp_path):
    with pytest.raises(
        StoreError, match=r"more than this process may write .`ulimit -f`."
    ) as caught:
        write_atomically(tmp_path / "new", bytes(5000), tmp_path / "tmp")
    assert caught.value.fix == "`ulimit -f unlimited`, then run again"
    assert not (tmp_path / "new").exists()
    cause = caught.value.__cause__
    assert isinstance(cause, OSError)
    said = sentence_of(OSError(errno.EFBIG, "File too large"), "tiny:export", "/p", str)
    assert said.what.startswith("can't write the outputs of tiny:export: a file of its size")


def test_a_path_that_no_system_opens_is_no_fault_of_writing(tmp_path):
    path = tmp_path / ("d" * 5000)
    with pytest.raises(OSError, match="too long") as caught:
        path.read_bytes()
    said = store_error(caught.value, path)
    assert said.what.startswith(
        f"a path is too long for this system: it has {len(str(path)):,} char"
    )
    assert len(said.what) < 300


@pytest.fixture
def without_inodes(tmp_path: Path) -> Iterator[Path]:
    """A disk with free bytes that takes no more files."""
    options = ["-o", "size=4m,nr_inodes=4"]
    done = subprocess.run(
        ["mount", "-t", "tmpfs", *options, "none", tmp_path], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a filesystem can't be mounted here: {done.stderr.decode().strip()}")
    for number in range(3):
        os.mknod(tmp_path / str(number))
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def test_a_disk_without_inodes_is_not_called_full_of_bytes(without_inodes):
    with pytest.raises(
        StoreError, match=r"no inode left on the disk.*\(4 MiB are free\) while writing"
    ):
        write_atomically(without_inodes / "new", b"x", without_inodes)
