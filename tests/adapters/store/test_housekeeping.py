"""Garbage collection keeps what runs need; verify finds what is damaged."""

import json
import os
import shutil
import threading
import time

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.locks import try_lock
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.store import memos
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.garbage import collect_garbage
from onnxbuild.adapters.store.housekeeping import verify, write_run
from onnxbuild.adapters.store.pins import pin, pins, unpin
from onnxbuild.adapters.store.usage import HitRates, collect_stats, hit_rates
from onnxbuild.core.action import Action, ActionResult, Observed
from onnxbuild.core.errors import StoreError, UsageError
from tests.adapters.test_store_contract import outputs_of
from tests.attack.unprivileged import without_override
from tests.fakes.heard import Heard

DAY_S = 24 * 3600.0


class World:
    def __init__(self, tmp_path):
        self.tmp_path = tmp_path
        self.index = Index(tmp_path / "index.db")
        self.store = DiskStore(tmp_path / "store", StatCache(self.index))
        self.store.prepare()
        self.root = self.store.root

    def build(self, *names: str, request="r", exit_code=0, days_ago=0.0, run=None) -> None:
        """A run that made or used a result for each name; a name's content is its own."""
        keys = []
        for name in names:
            key = name * 64
            artifact = self.store.ingest(outputs_of(self.tmp_path, model=name), "onnx-model")
            self.store.record(ActionResult(key, Observed(), {"out": artifact}))
            keys.append(key)
        run = run or f"{100 - days_ago:07.2f}-{request}"
        write_run(self.root, run, request, keys, exit_code)
        (self.root / "runs" / run / "logs").mkdir()
        past_s = time.time() - days_ago * DAY_S
        for path in self.root.rglob("*"):
            if path.parent.name != "runs" or path.name == run:
                is_young = path.stat().st_mtime > time.time() - 3600
                if is_young and (path.is_file() or path.parent.name == "runs"):
                    os.utime(path, (past_s, past_s))

    def was_up_to_date(self, request: str, *, days_ago: float) -> None:
        path = self.root / memos.FOLDER / request
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (time.time() - days_ago * DAY_S,) * 2)

    def gc(self, keep_days=30.0, grace_s=DAY_S, max_bytes=None):
        return collect_garbage(
            self.store, self.index, keep_days=keep_days, grace_s=grace_s, max_bytes=max_bytes
        )

    @property
    def kept(self) -> str:
        keys = sorted(path.stem[0] for path in (self.root / "ac").rglob("*.json"))
        assert all(
            not self.store.faults(self.store.lookup(k * 64)[0].outputs["out"]) for k in keys
        )
        return "".join(keys)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_what_the_newest_run_of_a_request_used_is_kept(world):
    world.build("a", "b", days_ago=9)
    world.build("b", "c", days_ago=5)
    removed = world.gc()
    assert world.kept == "bc"
    assert (removed.records, removed.blobs, removed.runs) == (1, 1, 1)
    assert removed.bytes > 0
    assert world.gc().records == 0


def test_each_request_counts_for_itself(world):
    world.build("a", request="one", days_ago=9)
    world.build("b", request="two", days_ago=5)
    world.gc()
    assert world.kept == "ab"


def test_a_failed_run_does_not_take_the_place_of_one_that_succeeded(world):
    world.build("a", "b", days_ago=9)
    world.build("c", exit_code=1, days_ago=5)
    world.gc()
    assert world.kept == "abc"


def test_what_no_run_used_for_long_goes(world):
    world.build("a", days_ago=31)
    world.build("b", request="other", days_ago=29)
    world.gc()
    assert world.kept == "b"
    assert world.gc(keep_days=3).records == 1
    assert world.kept == ""


def test_a_request_that_was_up_to_date_lately_counts_as_used(world):
    world.build("a", days_ago=60)
    world.was_up_to_date("r", days_ago=3)
    world.gc()
    assert world.kept == "a"


def test_nothing_young_is_removed_whatever_is_asked(world):
    world.build("a", days_ago=0.5)
    world.build("b", days_ago=0)
    (world.root / "tmp/left").write_text("x")
    world.gc(keep_days=0)
    assert world.kept == "ab"
    assert (world.root / "tmp/left").exists()
    world.gc(keep_days=0, grace_s=0)
    assert world.kept == ""
    assert not (world.root / "tmp/left").exists()


def test_a_blob_that_another_record_names_is_kept(world):
    world.build("a", days_ago=9)
    artifact = world.store.ingest(outputs_of(world.tmp_path, model="a"), "report")
    world.store.record(ActionResult("b" * 64, Observed(), {"out": artifact}))
    write_run(world.root, "0099", "r", ["b" * 64], 0)
    world.gc()
    assert world.kept == "b"


def test_a_blob_that_no_record_names_goes_when_it_is_old(world):
    world.store.ingest(outputs_of(world.tmp_path, model="left by a killed run"), "report")
    assert world.gc().blobs == 0
    assert world.gc(grace_s=0).blobs == 1


def test_what_is_known_of_what_is_gone_is_forgotten(world):
    world.build("a", days_ago=60)
    world.was_up_to_date("r", days_ago=60)
    world.index.save_stats({str(world.store.record_path("a" * 64)): ("1:2:3:4", 5, "d")})
    world.gc()
    assert memos.used_s(world.root, "r") == 0.0
    assert world.index.stat(str(world.store.record_path("a" * 64))) is None


def test_it_refuses_while_a_build_runs(world):
    lock = try_lock(world.root / "locks/store", shared=True)
    assert lock is not None
    with pytest.raises(StoreError, match="a build is running in this store"):
        world.gc()
    lock.release()
    world.gc()


def test_a_run_folder_that_is_no_run_is_no_harm(world):
    world.build("a", days_ago=2)
    (world.root / "runs/killed").mkdir()
    (world.root / "runs/odd").mkdir()
    (world.root / "runs/odd/run.json").write_text("[]")
    world.gc()
    assert world.kept == "a"


def test_verify_says_how_much_it_read_and_finds_nothing_in_a_sound_store(world):
    world.build("a", "b")
    assert verify(world.store, repair=False) == (4, [])


def test_verify_finds_each_kind_of_damage_and_sets_it_aside(world):
    world.build("a", "b", "c")
    record = world.store.record_path("a" * 64)
    record.write_bytes(record.read_bytes()[:-9])
    blob = next(p for p in (world.root / "cas").rglob("*") if p.is_file() and p.read_text() == "b")
    blob.chmod(0o644)
    blob.write_text("B")
    count, bad = verify(world.store, repair=False)
    assert count == 6
    assert len(bad) == 2
    assert bad[0].startswith(f"{blob.relative_to(world.root)}: its content has digest ")
    assert bad[1] == (
        f"{record.relative_to(world.root)}: the record is damaged or of another format"
    )
    assert blob.exists()
    assert verify(world.store, repair=True)[1] == bad
    assert not blob.exists()
    assert len(list((world.root / "quarantine").iterdir())) == 2
    assert verify(world.store, repair=False) == (4, [])


def test_verify_takes_what_is_collected_meanwhile_for_no_damage(world):
    world.build("a", "b", days_ago=40)

    class Collector:
        """Collects garbage once the first blob has been read."""

        def emit(self, event):
            world.gc(keep_days=0.0, grace_s=0.0)

    count, bad = verify(world.store, repair=True, events=[Collector()])
    assert world.kept == ""
    assert bad == []
    assert count == 1
    assert not list((world.root / "quarantine").iterdir())


def test_stats_can_be_taken_while_a_run_replaces_what_is_counted(world):
    world.build("a")
    ended = threading.Event()

    def replace_folders():
        while not ended.is_set():
            folder = world.root / "out/tiny/fp32"
            folder.mkdir(parents=True)
            for number in range(50):
                (folder / str(number)).touch()
            shutil.rmtree(folder)

    run = threading.Thread(target=replace_folders)
    run.start()
    try:
        for _ in range(100):
            assert collect_stats(world.store, world.index).records == 1
    finally:
        ended.set()
        run.join()


def test_stats_say_what_takes_the_space(world):
    world.build("a", "b")
    world.store.ingest(outputs_of(world.tmp_path, model="left"), "report")
    found = collect_stats(world.store, world.index)
    assert (found.records, found.blobs, found.runs) == (2, 3, 1)
    assert found.bytes_by_kind == {"onnx-model": 2}
    assert found.unreferenced_bytes == 4
    assert found.blob_bytes == 6


def test_what_is_pinned_is_kept_whatever_its_age(world):
    world.build("a", "b", days_ago=400)
    pin(world.root, "tiny-1.0", ["a" * 64, "a" * 64])
    assert world.gc().records == 1
    assert world.kept == "a"
    assert world.gc(keep_days=0, grace_s=0, max_bytes=1).records == 0
    assert pins(world.root) == {"tiny-1.0": {"a" * 64}}
    unpin(world.root, "tiny-1.0")
    assert world.gc().records == 1
    assert world.kept == ""


def test_a_pin_that_can_not_be_read_stops_collection(world):
    world.build("a", days_ago=400)
    pin(world.root, "tiny-1.0", ["a" * 64])
    path = world.root / "pins/tiny-1.0.json"
    path.write_text(path.read_text()[:-3])
    with pytest.raises(StoreError, match=r"tiny-1\.0\.json can't be read"):
        world.gc()
    assert world.kept == "a"


@pytest.mark.parametrize("part", ["pins", "ac", "ac/aa", f"ac/aa/{'a' * 64}.json"])
@pytest.mark.parametrize("mode", [0, 0o444], ids=["locked", "not entered"])
def test_collection_removes_nothing_while_what_says_what_is_needed_may_not_be_read(
    world, part, mode
):
    world.build("a", days_ago=400)
    pin(world.root, "tiny-1.0", ["a" * 64])
    path = world.root / part
    if mode and path.is_file():
        mode = 0o200
    before = path.stat().st_mode
    path.chmod(mode)
    with without_override(), pytest.raises(StoreError) as refused:
        world.gc(keep_days=0, grace_s=0)
    assert "Permission denied" in str(refused.value) or "can't be read" in str(refused.value)
    path.chmod(before)
    assert world.kept == "a"


def test_verify_does_not_pass_over_what_it_may_not_list(world):
    world.build("a")
    for part in ("ac", "cas/sha256"):
        (world.root / part).chmod(0o444)
        with without_override(), pytest.raises(StoreError, match="Permission denied"):
            verify(world.store, repair=False)
        (world.root / part).chmod(0o755)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".hidden", "a\0b"])
def test_a_pin_is_named_like_a_file(world, name):
    with pytest.raises(UsageError, match="can't name a pin"):
        pin(world.root, name, [])


def test_a_pin_that_is_not_there_is_named_with_those_that_are(world):
    pin(world.root, "tiny-1.0", [])
    with pytest.raises(UsageError, match=r"there is no pin 'tiny-1\.1'; there are: tiny-1\.0"):
        unpin(world.root, "tiny-1.1")


def test_over_its_size_a_store_drops_what_was_used_longest_ago(world):
    for number, name in enumerate("abcd"):
        world.build(name, request=name, days_ago=9 - number)
    pin(world.root, "old", ["a" * 64])
    removed = world.gc(max_bytes=2)
    assert world.kept == "ad"
    assert (removed.records, removed.left_bytes, removed.held_bytes) == (2, 2, 1)


def test_a_store_that_fits_drops_nothing_for_its_size(world):
    world.build("a", "b", days_ago=9)
    assert world.gc(max_bytes=2).records == 0
    assert world.kept == "ab"


def test_a_request_that_was_up_to_date_lately_is_dropped_last(world):
    world.build("a", request="one", days_ago=9)
    world.build("b", request="two", days_ago=5)
    world.was_up_to_date("one", days_ago=3)
    world.gc(max_bytes=1)
    assert world.kept == "a"


def test_what_is_younger_than_the_grace_stays_over_any_size(world):
    world.build("a", days_ago=9)
    world.build("b", "c", request="other")
    removed = world.gc(max_bytes=1)
    assert world.kept == "bc"
    assert (removed.left_bytes, removed.held_bytes) == (2, 2)


def test_a_blob_that_two_results_name_goes_with_the_last_of_them(world):
    world.build("a", request="one", days_ago=9)
    artifact = world.store.ingest(outputs_of(world.tmp_path, model="a"), "report")
    world.store.record(ActionResult("b" * 64, Observed(), {"out": artifact}))
    old_s = time.time() - 5 * DAY_S
    os.utime(world.store.record_path("b" * 64), (old_s, old_s))
    write_run(world.root, "0099", "two", ["b" * 64], 0)
    os.utime(world.root / "runs/0099", (old_s, old_s))
    assert world.gc(max_bytes=1).blobs == 0
    assert world.kept == "ab"


def test_stats_say_which_recipe_takes_the_space_and_what_pins_keep(world):
    for step, content in (("one:export", "xyz"), ("two:export", "uv")):
        action = Action("k", 1, {"of": step}, {}, {}, {}, None)
        artifact = world.store.ingest(outputs_of(world.tmp_path, model=content), "onnx-model")
        world.store.record(ActionResult(action.key, Observed(), {"out": artifact}))
        world.index.save_steps({step: (action, [], "", 0, 0.0)})
        pin(world.root, f"{step[:3]}-1", [action.key])
    world.build("a")
    found = collect_stats(world.store, world.index)
    assert found.bytes_by_recipe == {"one": 3, "two": 2, "": 1}
    assert found.pinned_bytes == {"one-1": 3, "two-1": 2}


def test_hit_rates_are_those_of_the_last_runs_that_ended(world):
    def end(run, cached, built, failed, kind="run_finished"):
        folder = world.root / "runs" / run
        folder.mkdir()
        reported = {"type": kind, "cached": cached, "built": built, "failed": failed}
        started = '{"type": "run_started"}'
        (folder / "events.jsonl").write_text(f"{started}\n{json.dumps(reported)}\n")

    assert hit_rates(world.root, 9).rate is None
    end("1", 0, 90, 0)
    end("2", 5, 2, 1)
    end("3", 2, 0, 0)
    end("4", 9, 9, 9, kind="step_finished")
    (world.root / "runs/5").mkdir()
    found = hit_rates(world.root, 2)
    assert found == HitRates(runs=2, reused=7, built=2, failed=1)
    assert found.rate == pytest.approx(0.7)


def test_verify_reports_the_bytes_that_it_has_read(tmp_path):
    world = World(tmp_path)
    world.build("a", "b", "c")
    heard = Heard()
    count, bad = verify(world.store, repair=False, events=[heard])
    assert (count > 3, bad) == (True, [])
    size = sum(path.stat().st_size for path in (world.root / "cas").rglob("*") if path.is_file())
    assert {(each.step, each.total, each.unit) for each in heard.events} == {
        ("cache verify", size, "bytes")
    }
    done = [each.done for each in heard.events]
    assert done == sorted(set(done))
    assert len(done) >= 3
    assert done[-1] == size
