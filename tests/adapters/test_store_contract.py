"""One contract, held by the store in memory and the store on disk alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.core.action import MAX_TRACES, ActionResult, Listing, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Finding
from tests.fakes.world import MemoryStore

KEY = "a" * 64


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore()
    disk = DiskStore(tmp_path / "store", StatCache(Index(tmp_path / "index.db")))
    disk.prepare()
    return disk


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
