"""Of runs that are over, the last ones' logs are kept, and the notes that garbage collection reads."""

import os
import subprocess
import time

import pytest

from onnxbuild.adapters.clock import run_id
from onnxbuild.adapters.disk.index import RECIPES_MAX, Index
from onnxbuild.adapters.disk.locks import wait_lock
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.store.garbage import collect_garbage
from onnxbuild.adapters.store.housekeeping import write_run
from onnxbuild.adapters.store.runs import KEPT_RUNS, MOST_RUNS, SLACK, drop_old_runs, files_built
from onnxbuild.core.action import ActionResult, Observed
from tests.adapters.test_store_contract import outputs_of
from tests.fork_servers import script

DAY_S = 24 * 3600.0


class Runs:
    """A store with runs, the first one the oldest."""

    def __init__(self, folder):
        self.folder = folder
        self.index = Index(folder / "index.db")
        self.store = DiskStore(folder / "store", StatCache(self.index))
        self.store.prepare()
        self.root = self.store.root
        self.count = 0

    def add(self, count=1, *, days_ago=0.0, request="", exit_code=0, keys=(), recipes=None):
        for _ in range(count):
            self.count += 1
            name = f"{self.count:06}"
            folder = self.root / "runs" / name
            (folder / "logs").mkdir(parents=True)
            (folder / "logs" / "a.log").write_text("it said so\n")
            (folder / "events.jsonl").write_text("{}\n")
            write_run(
                self.root, name, request or "r", list(keys), exit_code, recipes=recipes or {}
            )
            past_s = time.time() - days_ago * DAY_S
            os.utime(folder, (past_s, past_s))
        return name

    def with_logs(self):
        return sorted(path.parent.name for path in self.root.glob("runs/*/logs"))

    def with_notes(self):
        return sorted(path.parent.name for path in self.root.glob("runs/*/run.json"))


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


def test_the_last_fifty_stay_whatever_their_age(runs):
    runs.add(KEPT_RUNS, days_ago=400)
    assert drop_old_runs(runs.root, slack=0) == (0, 0)
    runs.add(days_ago=300)
    dropped, freed = drop_old_runs(runs.root, slack=0)
    assert dropped == 1
    assert freed > 0
    assert runs.with_logs() == [f"{n:06}" for n in range(2, KEPT_RUNS + 2)]


def test_those_of_a_month_stay_up_to_two_hundred(runs):
    runs.add(10, days_ago=40)
    runs.add(MOST_RUNS - 5, days_ago=5)
    assert drop_old_runs(runs.root, slack=0)[0] == 10
    assert len(runs.with_logs()) == MOST_RUNS - 5
    runs.add(20, days_ago=3)
    assert drop_old_runs(runs.root, slack=0)[0] == 15
    assert len(runs.with_logs()) == MOST_RUNS


def test_a_few_more_are_left_until_it_is_worth_it(runs):
    runs.add(KEPT_RUNS + SLACK, days_ago=40)
    assert drop_old_runs(runs.root) == (0, 0)
    runs.add(days_ago=40)
    assert drop_old_runs(runs.root)[0] == SLACK + 1


def test_the_notes_that_garbage_collection_counts_by_stay_with_their_time(runs):
    good = runs.add(request="once", days_ago=40)
    bad = runs.add(request="once", exit_code=3, days_ago=39)
    runs.add(KEPT_RUNS + 1, days_ago=35)
    before_s = (runs.root / "runs" / good).stat().st_mtime
    assert drop_old_runs(runs.root, slack=0)[0] == 3
    assert runs.with_notes()[:3] == [
        good,
        bad,
        "000004",
    ]  # "000003" is not the last of its request
    assert good not in runs.with_logs()
    assert (runs.root / "runs" / good).stat().st_mtime == before_s
    runs.add(request="once", days_ago=34)
    runs.add(request="once", exit_code=3, days_ago=34)
    drop_old_runs(runs.root, slack=0)
    assert good not in runs.with_notes()
    assert bad not in runs.with_notes()


def test_what_a_dropped_runs_note_names_is_still_kept_by_gc(runs, tmp_path):
    key = "a" * 64
    artifact = runs.store.ingest(outputs_of(tmp_path, model="a"), "onnx-model")
    runs.store.record(ActionResult(key, Observed(), {"out": artifact}))
    for path in runs.root.rglob("*"):
        if path.is_file():
            os.utime(path, (time.time() - 20 * DAY_S,) * 2)
    runs.add(request="rare", keys=[key], days_ago=20)
    runs.add(MOST_RUNS + 5, days_ago=2)
    assert drop_old_runs(runs.root, slack=0)[0] == 6
    collect_garbage(runs.store, runs.index, keep_days=30)
    assert runs.store.lookup(key)
    collect_garbage(runs.store, runs.index, keep_days=10)
    assert not runs.store.lookup(key)


def test_a_run_in_progress_of_another_process_stays(runs):
    mine = runs.add(days_ago=90)
    killed = runs.add(days_ago=90)
    runs.add(KEPT_RUNS, days_ago=60)
    code = (
        "import sys; from pathlib import Path; from onnxbuild.adapters.disk.locks import wait_lock\n"
        "held = wait_lock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    path = runs.root / "locks" / f"run-{mine}"
    wait_lock(runs.root / "locks" / f"run-{killed}").release()
    with subprocess.Popen(
        [*script(code), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        drop_old_runs(runs.root, slack=0)
        assert mine in runs.with_logs()
        assert killed not in runs.with_logs()
        process.communicate()
    drop_old_runs(runs.root, slack=0)
    assert mine not in runs.with_logs()


def test_a_run_that_has_just_begun_stays_though_its_clock_is_behind(runs):
    young = runs.add()
    runs.add(MOST_RUNS, days_ago=2)
    drop_old_runs(runs.root, slack=0)
    assert young in runs.with_logs()


def test_files_are_known_by_the_names_of_their_recipes(runs):
    runs.add(recipes={"bert": "recipes/old.yaml"})
    runs.add(recipes={"bert": "recipes/bert.yaml", "other": "x.yaml"})
    runs.add(recipes={"bert": "recipes/bert.yaml"})
    (runs.root / "runs" / "000003" / "run.json").write_text("[1]")
    assert files_built(runs.root, "bert") == ["recipes/bert.yaml", "recipes/old.yaml"]
    assert files_built(runs.root, "unknown") == []
    assert files_built(runs.root / "nowhere", "bert") == []


def test_the_index_forgets_what_is_gone_and_what_was_long_ago(runs, tmp_path):
    index, here = runs.index, tmp_path / "a file"
    here.write_text("x")
    row = ("1:1:1:1", 0, "digest")
    known = [str(here), f"list {here}", f"interpreter 1:2 /gone/python {here}"]
    index.save_stats(dict.fromkeys([*known, "/gone/file", "list /gone/file"], row))
    for number in range(RECIPES_MAX + 2):
        index.save_recipes(f"r{number}", "{}", "[]", float(number))
    index.drop_old()
    assert all(index.stat(key) for key in known)
    assert not index.stat("/gone/file")
    assert not index.stat("list /gone/file")
    assert index.counts() == {"recipe": RECIPES_MAX, "step": 0, "stat": 3}
    assert index.recipes("r2")
    assert index.recipes("r1") is None


def test_gc_gives_the_index_its_space_back(runs):
    for number in range(RECIPES_MAX + 10):
        recipes = "a" * (100_000 if number < 10 else 1)
        runs.index.save_recipes(f"m{number}", "{}", recipes, time.time() + number)
    before = runs.index.path.stat().st_size
    collect_garbage(runs.store, runs.index, keep_days=30)
    assert runs.index.path.stat().st_size < before / 2


def test_a_run_sorts_after_the_last_one_though_the_clock_was_set_back():
    ahead = "29991231T235959.999Z-7-beef"
    assert run_id(ahead) > ahead
    assert run_id(ahead).startswith("30000101T000000.000Z-")
    behind = "19700101T000000.000Z-7-beef"
    for other in ("", behind, "notes", "20269999T999999.999Z-7-beef"):
        assert behind < run_id(other) < ahead
