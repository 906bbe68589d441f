import hashlib
import io
import tarfile

import pytest

from onnxbuild.adapters.store.delivery import Blob
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import StoreError
from onnxbuild.release_format.archive import HashSink, write_archive

EPOCH_S = 1_600_000_000


def archived(tree, epoch_s=EPOCH_S):
    beyond = io.BytesIO()
    sink = HashSink(beyond)
    write_archive(sink, "top-1", tree, epoch_s)
    content = beyond.getvalue()
    assert (sink.sha256, sink.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    return content


@pytest.fixture
def blob(tmp_path):
    path = tmp_path / "blob"
    path.write_bytes(b"weights" * 10_000)
    path.chmod(0o444)
    return Blob(path, Digest.of(path.read_bytes()))


def test_entries_are_sorted_owned_by_nobody_and_of_one_time(blob):
    tree = {"variants/int8/model.onnx": blob, "README.md": b"read", "variants/a": b""}
    with tarfile.open(fileobj=io.BytesIO(archived(tree))) as archive:
        entries = archive.getmembers()
        assert archive.extractfile("top-1/variants/int8/model.onnx").read() == b"weights" * 10_000
    assert [(e.name, e.mode) for e in entries] == [
        ("top-1", 0o755),
        ("top-1/README.md", 0o644),
        ("top-1/variants", 0o755),
        ("top-1/variants/a", 0o644),
        ("top-1/variants/int8", 0o755),
        ("top-1/variants/int8/model.onnx", 0o644),
    ]
    assert {(e.uid, e.gid, e.uname, e.gname, e.mtime) for e in entries} == {
        (0, 0, "", "", EPOCH_S)
    }
    assert not any(e.pax_headers for e in entries)


def test_the_order_of_the_tree_and_the_state_of_its_files_do_not_matter(blob, tmp_path):
    copy = tmp_path / "copy"
    copy.write_bytes(blob.path.read_bytes())
    one = archived({"a": b"1", "b/c": blob})
    two = archived({"b/c": Blob(copy, blob.digest), "a": b"1"})
    assert one == two
    assert one != archived({"a": b"1", "b/c": blob}, EPOCH_S + 1)


def test_long_and_foreign_names_survive(blob):
    names = ["ü/" + "n" * 120 + "/" + "m" * 150, "x" * 99 + "/y"]
    content = archived(dict.fromkeys(names, b"content"))
    assert content == archived(dict.fromkeys(reversed(names), b"content"))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert {m.name for m in archive if m.isreg()} == {f"top-1/{name}" for name in names}


def test_a_blob_that_is_not_what_it_should_be_ends_it(blob):
    blob.path.chmod(0o644)
    blob.path.write_bytes(b"wEights" + b"weights" * 9_999)
    with pytest.raises(StoreError, match="damaged in the store"):
        archived({"model.onnx": blob})
