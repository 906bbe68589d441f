"""Files that a person names: links stay, pipes are written to."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.atomic_files import write_atomically, write_output
from onnxbuild.core.errors import StoreError


def test_a_new_file_and_its_folder_are_made(tmp_path):
    write_output(tmp_path / "new" / "page.html", b"page")
    assert (tmp_path / "new" / "page.html").read_bytes() == b"page"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_its_file_is_written(tmp_path, is_there):
    (tmp_path / "to").mkdir()
    if is_there:
        (tmp_path / "to" / "real.html").write_bytes(b"old")
    link = tmp_path / "link.html"
    link.symlink_to("to/real.html")
    write_output(link, b"page")
    assert link.is_symlink()
    assert (tmp_path / "to" / "real.html").read_bytes() == b"page"
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["real.html"]


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_output(pipe, b"page")
    reader.join(10)
    assert read == [b"page"]
    assert pipe.is_fifo()


def test_a_read_only_filesystem_is_said_of_the_file_and_not_of_a_temporary_one(
    tmp_path, monkeypatch
):
    def refuse(path, *_args, **_named):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)  # of a file that is not there, too
    with pytest.raises(StoreError, match=r"can't write .*/page\.html: Read-only file system"):
        write_atomically(tmp_path / "page.html", b"page", tmp_path)
