"""Files that are written: whole or not at all, where a person asks for them, on a disk that refuses; short names of temporary folders."""

import errno
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.atomic_files import store_error, write_atomically, write_output
from onnxbuild.adapters.disk.short_temp import ShortName, remove_short_name
from onnxbuild.adapters.sandbox.uncaught import sentence_of
from onnxbuild.core.errors import StoreError


@pytest.fixture
def links(tmp_path, monkeypatch):
    """The system's folder of temporary files, of this test's own."""
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def deep(folder: Path) -> Path:
    return folder / ("a" * 60) / "run"


def test_a_short_folder_needs_no_link(links):
    assert ShortName(Path("/a/b")).path == Path("/a/b")
    assert not list(links.iterdir())


def test_a_long_folder_has_a_link_while_it_is_used(links, tmp_path):
    short = ShortName(deep(tmp_path))
    assert (short.path.parent, short.path.readlink()) == (links, deep(tmp_path))
    short.remove()
    assert not list(links.iterdir())


def test_what_a_killed_process_left_is_found_by_the_folders_name_and_nothing_else_is_removed(
    links, tmp_path
):
    ShortName(deep(tmp_path))
    other = ShortName(deep(tmp_path / "b"))
    remove_short_name(deep(tmp_path))
    assert list(links.iterdir()) == [other.path]
    remove_short_name(deep(tmp_path))
    other.remove()
    taken = ShortName(deep(tmp_path)).path
    taken.unlink()
    taken.symlink_to(tmp_path)  # somebody else's, under this name
    remove_short_name(deep(tmp_path))
    assert taken.is_symlink()
    assert ShortName(deep(tmp_path)).path == deep(tmp_path)


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


@pytest.fixture
def file_limit() -> Iterator[None]:
    """`ulimit -f`: no file of this process grows beyond 4 KiB."""
    resource = pytest.importorskip("resource")  # hidden on the portable path
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
