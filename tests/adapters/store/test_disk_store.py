"""What only a disk can do: be full, be read-only, rot, be shared."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache, hash_file
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.housekeeping import verify
from onnxbuild.core.errors import StepError, StoreError
from tests.adapters.test_store_contract import KEY, outputs_of, result
from tests.fork_servers import script


@pytest.fixture
def store(tmp_path):
    disk = DiskStore(tmp_path / "store", StatCache(Index(tmp_path / "index.db")))
    disk.prepare()
    return disk


def reopened(store, tmp_path):
    return DiskStore(store.root, StatCache(Index(tmp_path / "other.db")))


def blob_of(store, artifact):
    ((_, digest),) = artifact.files
    return store.blob(digest)


def test_blobs_are_read_only_and_lie_under_their_digest(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    path = blob_of(store, artifact)
    assert path.stat().st_mode & 0o777 == 0o444
    assert path.parent.name == path.name[:2]


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "delete"])
def test_a_damaged_blob_is_found_set_aside_and_can_be_made_again(store, tmp_path, damage):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    path = blob_of(store, artifact)
    path.chmod(0o644)
    if damage == "flip":
        path.write_bytes(b"weighTs")
    elif damage == "truncate":
        path.write_bytes(b"weig")
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    for each in (store, reopened(store, tmp_path)):
        (fault,) = each.faults(artifact)
        assert fault.startswith("model ")
    assert not path.exists()
    again = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    assert again == artifact
    assert store.faults(artifact) == ()


def test_a_file_that_another_run_set_aside_meanwhile_is_no_fault_of_the_disk(store, tmp_path):
    path = blob_of(store, store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model"))
    store.set_aside(path)
    reopened(store, tmp_path).set_aside(path)
    assert [each.name.partition(".")[0] for each in (store.root / "quarantine").iterdir()] == [
        path.name
    ]


def test_a_flip_that_sets_the_modification_time_back_is_found(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    path = blob_of(store, artifact)
    before = path.stat()
    path.chmod(0o644)
    path.write_bytes(b"weighTs")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    path.chmod(0o444)
    assert store.faults(artifact) == ("model is damaged in the store",)


def rot(store, artifact):
    """Flip a bit beneath the filesystem: the path's identity is one that is known to be sound."""
    path = blob_of(store, artifact)
    path.chmod(0o644)
    path.write_bytes(b"weighTs")
    store._stats.note_own(str(path), path.name)
    store._stats.save()
    return path


def test_rot_that_no_stat_shows_is_found_when_the_content_is_asked_for(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    path = rot(store, artifact)
    other = DiskStore(store.root, StatCache(Index(tmp_path / "index.db")))
    assert other.faults(artifact) == ()
    assert other.faults(artifact, by_content=True) == ("model is damaged in the store",)
    assert not path.exists()


def test_what_this_process_wrote_or_read_is_not_read_again(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    assert store.faults(artifact, by_content=True) == ()
    other = DiskStore(store.root, StatCache(Index(tmp_path / "index.db")))
    assert other.faults(artifact, by_content=True) == ()
    for each in (store, other):
        assert list(each._read) == [str(blob_of(store, artifact))]


def test_an_output_that_links_to_a_blob_is_that_blob_and_nothing_is_copied(store, tmp_path):
    made = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    before = blob_of(store, made).stat()
    folder = outputs_of(tmp_path, other="report")
    (folder / "model").symlink_to(blob_of(store, made))
    bundle = store.ingest(folder, "bundle")
    assert dict(bundle.files)["model"] == dict(made.files)["model"]
    assert store.faults(bundle, by_content=True) == ()
    assert blob_of(store, made).stat() == before


def test_an_output_that_links_to_a_blob_that_is_not_whole_is_refused(store, tmp_path):
    made = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    blob = blob_of(store, made)
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "model").symlink_to(blob)
    blob.chmod(0o644)
    blob.write_text("rotten!")
    again = reopened(store, tmp_path)
    with pytest.raises(StepError, match="output 'model' is not a plain file"):
        again.ingest(folder, "bundle")


def test_an_output_that_is_there_already_takes_the_place_of_a_rotten_one(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    path = rot(store, artifact)
    other = DiskStore(store.root, StatCache(Index(tmp_path / "index.db")))
    assert other.ingest(outputs_of(tmp_path, model="weights"), "onnx-model") == artifact
    assert path.read_bytes() == b"weights"


@pytest.mark.parametrize("position", [0, 10, 100, -2])
def test_a_flipped_bit_in_a_record_makes_it_no_record(store, tmp_path, position):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    store.record(result(artifact))
    path = store.record_path(KEY)
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    assert store.lookup(KEY) == ()
    assert not path.exists()


def test_a_record_under_another_key_is_no_record(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    store.record(result(artifact))
    other = "b" * 64
    target = store.record_path(other)
    target.parent.mkdir(parents=True)
    target.write_bytes(store.record_path(KEY).read_bytes())
    assert store.lookup(other) == ()


def test_a_store_of_a_newer_format_is_refused_with_what_to_do(tmp_path):
    root = tmp_path / "store"
    root.mkdir()
    (root / "FORMAT").write_text("99\n")
    with pytest.raises(StoreError, match="has format 99") as caught:
        DiskStore(root, StatCache(Index(tmp_path / "index.db"))).prepare()
    assert "upgrade onnxbuild" in caught.value.fix


@pytest.mark.parametrize("name", ["tmp", "runs", "quarantine", "ac"])
def test_a_folder_whose_files_a_store_would_remove_does_not_become_one(tmp_path, name):
    own = tmp_path / name / "experiment/notes.txt"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    disk = DiskStore(tmp_path, StatCache(Index(Path(":memory:"))))
    with pytest.raises(StoreError, match=f"is no store, and its '{name}' is not onnxbuild's") as e:
        disk.prepare()
    assert "--store FOLDER" in e.value.fix
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_store_that_has_lost_its_format_gets_another_one(store):
    (store.root / "FORMAT").unlink()
    store.prepare()
    assert (store.root / "FORMAT").read_text() == "1\n"


def test_a_store_below_a_file_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    disk = DiskStore(tmp_path / "file" / "store", StatCache(Index(tmp_path / "index.db")))
    with pytest.raises(StoreError):
        disk.prepare()


def test_a_lock_that_another_process_holds_is_refused_and_free_when_it_is_killed(store):
    code = (
        "import sys, time; from pathlib import Path; from onnxbuild.adapters.disk.locks import try_lock;"
        "lock = try_lock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    path = store.root / "locks" / f"key-{KEY}"
    holder = subprocess.Popen([*script(code), str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert store.try_lock(KEY) is None
    holder.kill()
    holder.wait()
    holder.stdout.close()
    deadline_s = time.monotonic() + 5
    while (lock := store.try_lock(KEY)) is None and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert lock is not None
    lock.release()


def test_records_are_canonical_json_with_a_checksum(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    store.record(result(artifact))
    body = json.loads(store.record_path(KEY).read_bytes())
    assert sorted(body) == ["checksum", "format", "key", "traces"]


WRITER = """
import sys
from pathlib import Path
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.disk_views import DiskViews
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.core.action import ActionResult, Observed
from onnxbuild.core.graph import OutputRef, Deliverable

root, start = Path(sys.argv[1]), int(sys.argv[2])
stats = StatCache(Index(root / "index.db"))
store = DiskStore(root, stats)
store.prepare()
print("ready", flush=True)
for n in range(start, start + 10_000):
    folder = root / "tmp" / f"made-{n}"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"%d" % n * 50_000)
    artifact = store.ingest(folder, "onnx-model")
    store.record(ActionResult(f"{n:064x}", Observed(sources={"m.py": str(n)}), {"out": artifact}))
    view = Deliverable("r", "v", ((OutputRef("s", "out"), ""),))
    DiskViews(store.root, store, stats).lay(view, {("s", "out"): artifact})
    stats.save()
"""


def test_a_writer_that_is_killed_at_any_moment_leaves_only_whole_files(tmp_path):
    root = tmp_path / "store"
    records = 0
    for attempt in range(12):
        writer = subprocess.Popen(
            [*script(WRITER), str(root), str(attempt * 10_000)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        deadline_s = time.monotonic() + 30
        while attempt % 2 and _records(root) < records + 3 and time.monotonic() < deadline_s:
            time.sleep(0.005)  # on a busy machine, too, every other writer writes some
        time.sleep(0.01 + 0.013 * attempt)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        store = DiskStore(root, StatCache(Index(root / "index.db")))
        count, bad = verify(store, repair=False)
        assert bad == []
        for path in (root / "ac").rglob("*.json"):
            (found,) = store.lookup(path.stem)
            assert store.faults(found.outputs["out"]) == ()
        records = _records(root)
        model = root / "out/r/v/model.onnx"
        if model.exists():
            blobs = {path.name for path in (root / "cas").rglob("*") if path.is_file()}
            assert hash_file(str(model)) in blobs
        assert count >= 2 * records
    assert records > 12


def _records(root: Path) -> int:
    return len(list((root / "ac").rglob("*.json")))
