"""One contract, held by the store in memory, the store on disk, one above another, and a store behind a store."""

from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.layered_store import BaseLayer, LayeredStore
from onnxbuild.core.action import MAX_TRACES, ActionResult, Listing, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Finding
from tests.fakes.elsewhere import StoreBehind
from tests.fakes.world import MemoryStore

KEY = "a" * 64


def disk_store(folder: Path) -> DiskStore:
    disk = DiskStore(folder / "store", StatCache(Index(folder / "index.db")))
    disk.prepare()
    return disk


@pytest.fixture(params=["memory", "disk", "layered", "behind"])
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore()
    disk = disk_store(tmp_path)
    if request.param == "layered":
        own = tmp_path / "own"
        layered = LayeredStore(own, StatCache(Index(tmp_path / "own.db")), [BaseLayer(disk.root)])
        layered.prepare()
        return layered
    return disk if request.param == "disk" else StoreBehind(disk, MemoryStore())


def outputs_of(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def result(artifact: Artifact, *, source: str = "one", key: str = KEY) -> ActionResult:
    return ActionResult(
        key=key,
        observed=Observed(
            sources={"m.py": source},
            listings={".": Listing(("m",), ("m.py",))},
            distributions={"tool": "1"},
        ),
        outputs={"out": artifact},
        metrics={"n": 1, "x": 0.5},
        findings=(Finding("what", "where", "fix"),),
        notes=("a note",),
    )


def test_what_is_recorded_is_found(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    store.record(result(artifact))
    assert store.lookup(KEY) == (result(artifact),)
    assert store.lookup("b" * 64) == ()


def test_an_artifact_is_named_by_kind_paths_and_content(store, tmp_path):
    one = store.ingest(outputs_of(tmp_path, a="x", b__c="y"), "report")
    same = store.ingest(outputs_of(tmp_path, b__c="y", a="x"), "report")
    swapped = store.ingest(outputs_of(tmp_path, a="y", b__c="x"), "report")
    other_kind = store.ingest(outputs_of(tmp_path, a="x", b__c="y"), "bundle")
    assert one == same
    assert one.sha256 == same.sha256
    assert len({one.sha256, swapped.sha256, other_kind.sha256}) == 3
    assert [path for path, _ in one.files] == ["a", "b/c"]


def test_newer_results_come_first_and_equal_observations_replace(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    other = store.ingest(outputs_of(tmp_path, model="others"), "onnx-model")
    store.record(result(artifact, source="one"))
    store.record(result(artifact, source="two"))
    store.record(result(other, source="one"))
    found = store.lookup(KEY)
    assert [each.observed.sources["m.py"] for each in found] == ["one", "two"]
    assert found[0].outputs["out"] == other


def test_a_key_keeps_a_bounded_number_of_results(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    for number in range(MAX_TRACES + 3):
        store.record(result(artifact, source=str(number)))
    assert len(store.lookup(KEY)) == MAX_TRACES
    assert store.lookup(KEY)[0].observed.sources["m.py"] == str(MAX_TRACES + 2)


def test_a_link_is_no_output(store, tmp_path):
    folder = outputs_of(tmp_path, model="weights")
    (folder / "link").symlink_to("/etc/hostname")
    with pytest.raises(StepError, match="output 'link' is not a plain file"):
        store.ingest(folder, "report")


def test_a_lock_can_be_taken_and_released(store):
    lock = store.try_lock(KEY)
    assert lock is not None
    lock.release()
    again = store.try_lock(KEY)
    assert again is not None
    again.release()


def test_what_was_discarded_is_a_fault_until_it_is_made_again(store, tmp_path):
    artifact = store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    assert store.faults(artifact, by_content=True) == ()
    store.discard(artifact.files[0][1])
    assert store.faults(artifact) == ("model is missing from the store",)
    assert store.ingest(outputs_of(tmp_path, model="weights"), "onnx-model") == artifact
    assert store.faults(artifact, by_content=True) == ()


def test_what_another_machine_made_is_found_and_comes_here_when_it_is_read(tmp_path):
    far = MemoryStore()
    one, two = (StoreBehind(disk_store(tmp_path / name), far) for name in ("one", "two"))
    artifact = one.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    one.record(result(artifact))
    assert two.lookup(KEY) == (result(artifact),)
    assert two.faults(artifact) == ()
    assert two.paths(artifact)["model"].read_text() == "weights"
    far.blobs.clear()
    assert two.faults(artifact, by_content=True) == ()


def test_damage_on_the_way_is_no_content(tmp_path):
    far = MemoryStore()
    one, two = (StoreBehind(disk_store(tmp_path / name), far) for name in ("one", "two"))
    artifact = one.ingest(outputs_of(tmp_path, model="weights"), "onnx-model")
    one.record(result(artifact))
    far.blobs[artifact.files[0][1].sha256] = b"flipped"
    assert two.faults(artifact) == ("model is missing from the store",)
    assert not two.paths(artifact)["model"].exists()
