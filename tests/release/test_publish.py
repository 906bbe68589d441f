"""A release is whole or absent, whatever happens while it is written."""

import os
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time

import pytest

from onnxbuild.adapters.store.delivery import Blob
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, NotReproducibleError, StoreError
from onnxbuild.release.publish import publish
from tests.adapters.store.test_delivery import files
from tests.fakes.heard import Heard

TREE = {"README.md": b"read", "variants/int8/model.onnx": b"weights"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def put(releases, tree=TREE, *, force=False, events=()):
    return publish(releases, "x-1", tree, epoch_s=0, force=force, events=events)


def test_what_is_written_of_a_release_is_reported_up_to_its_end(tmp_path):
    tree = {**TREE, "golden/points.npz": os.urandom(1 << 20)}
    size = 2 * sum(map(len, tree.values()))
    for _ in ("written", "there already, identical"):
        heard = Heard()
        put(tmp_path / "dist", tree, events=[heard])
        assert {(each.step, each.total, each.unit) for each in heard.events} == {
            ("x-1", size, "bytes")
        }
        done = [each.done for each in heard.events]
        assert done == sorted(done)
        assert any(0 < each < size for each in done)
        assert done[-1] == size


def test_a_release_is_a_folder_and_an_archive_with_modes_of_their_own(tmp_path):
    before = os.umask(0o077)
    try:
        published = put(tmp_path / "dist")
    finally:
        os.umask(before)
    assert files(published.folder) == TREE
    assert (published.written, published.files) == (True, 2)
    modes = {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "dist").rglob("*")}
    assert modes["model.onnx"] == modes["x-1.tar"] == 0o644
    assert modes["x-1"] == modes["int8"] == 0o755
    with tarfile.open(published.archive) as archive:
        assert archive.extractfile("x-1/README.md").read() == b"read"
    assert names(tmp_path / "dist") == ["x-1", "x-1.tar"]


def test_what_is_there_and_identical_is_left_alone(tmp_path):
    first = put(tmp_path)
    stamp = first.archive.stat().st_mtime_ns
    second = put(tmp_path)
    assert (second.written, second.sha256) == (False, first.sha256)
    assert first.archive.stat().st_mtime_ns == stamp
    first.archive.unlink()
    third = put(tmp_path)
    assert (third.written, third.sha256) == (True, first.sha256)
    assert third.archive.exists()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda d: (d / "x-1/README.md").write_bytes(b"other"), "README.md has other bytes"),
        (lambda d: (d / "x-1.tar").write_bytes(b""), "x-1.tar has other bytes"),
    ],
)
def test_what_is_there_and_differs_is_replaced_only_by_force(tmp_path, damage, named):
    put(tmp_path)
    damage(tmp_path)
    before = files(tmp_path)
    with pytest.raises(NotReproducibleError, match=named) as caught:
        put(tmp_path)
    assert "--force" in caught.value.fix
    assert files(tmp_path) == before
    put(tmp_path, force=True)
    assert files(tmp_path / "x-1") == TREE
    assert put(tmp_path).written is False
    assert names(tmp_path) == ["x-1", "x-1.tar"]


def test_a_damaged_blob_leaves_the_folder_as_it_was(tmp_path):
    (tmp_path / "blob").write_bytes(b"bad")
    blob = Blob(tmp_path / "blob", Digest.of(b"ok!"))
    with pytest.raises(StoreError, match="damaged in the store"):
        put(tmp_path / "dist", {"model.onnx": blob})
    assert not (tmp_path / "dist" / "x-1").exists()


def test_a_folder_that_can_not_be_written_is_reported(tmp_path):
    (tmp_path / "dist").write_text("a file")
    with pytest.raises(BuildError, match="can't write") as caught:
        put(tmp_path / "dist")
    assert "--out" in caught.value.fix


ENDLESS = """
import sys
from pathlib import Path
from onnxbuild.release.publish import publish
print("ready", flush=True)
for number in range(100_000):
    tree = {f"f{n % 3}/{n}": bytes([number % 251]) * 40_000 for n in range(30)}
    publish(Path(sys.argv[1]), f"x-{number % 4}", tree, epoch_s=0, force=True)
"""


@pytest.mark.slow
def test_a_killed_process_leaves_whole_releases_and_the_next_tidies_up(tmp_path):
    moment = random.Random(1)
    scratches = 0
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", ENDLESS, str(tmp_path)], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(moment.uniform(0.02, 0.15))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for path in tmp_path.iterdir():
            if path.name.startswith(".onnxbuild-"):
                scratches += 1
            elif path.is_dir():
                found = files(path)
                assert len(found) == 30
                assert len(set(found.values())) == 1
                assert {len(content) for content in found.values()} == {40_000}
            else:
                with tarfile.open(path) as archive:
                    assert len([m for m in archive if m.isreg()]) == 30
    assert scratches, "no process was killed while it wrote"
    put(tmp_path, force=True)  # one of those that were killed may have got as far as x-1
    assert not list(tmp_path.glob(".onnxbuild-*"))


def test_a_release_that_a_killed_process_had_taken_away_is_there_before_anything_is_compared(
    tmp_path,
):
    put(tmp_path)
    dead = tmp_path / ".onnxbuild-dead"
    dead.mkdir()
    (tmp_path / "x-1").rename(dead / "replaced-x-1")  # as where no two names can be exchanged
    with pytest.raises(NotReproducibleError, match=r"README\.md has other bytes"):
        put(tmp_path, {**TREE, "README.md": b"other"})
    assert files(tmp_path / "x-1") == TREE
    assert names(tmp_path) == ["x-1", "x-1.tar"]


def test_of_two_releases_of_one_version_at_once_one_is_refused(tmp_path):
    """The second is asked for while the first writes its files, and both saw that nothing was there."""
    other = {**TREE, "README.md": b"another"}
    ended: list[BaseException | None] = []

    def release_other() -> None:
        try:
            put(tmp_path, other)
            ended.append(None)
        except NotReproducibleError as error:
            ended.append(error)

    second = threading.Thread(target=release_other)

    class Meanwhile:
        def emit(self, event: object) -> None:
            if not second.ident:
                second.start()
                second.join(0.3)

    put(tmp_path, events=[Meanwhile()])
    second.join()
    assert "there is another x-1" in str(ended[0])
    assert files(tmp_path / "x-1") == TREE
