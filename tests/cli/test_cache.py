"""`onnxbuild cache`, on a store that a run has filled."""

import json
import os
import re
import time

import pytest

from onnxbuild.adapters.store.pins import pin
from onnxbuild.core.sizes import counted

DAY_S = 86400.0


@pytest.fixture
def project(cheap, tmp_path, monkeypatch):
    monkeypatch.setenv("ONNXBUILD_CACHE", str(tmp_path / "cache"))
    return cheap


def age(folder, days: float) -> None:
    """Make everything below a folder as old as if it had lain there for days."""
    then_s = time.time() - days * DAY_S
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (then_s, then_s), follow_symlinks=False)


def test_a_store_is_measured_pinned_and_cut_to_size(project):
    assert project.run("--only", "export").code == 0
    project.edit("models/tiny.py", "width=8", "width=9")
    assert project.run("--only", "export", "--only", "optimize").code == 0
    store = project.folder / "artifacts"

    stats = project("cache", "stats").out
    assert re.search(r"  by recipe  +[\d.]+ K?i?B tiny\n", stats)
    assert "hit rate     0% of the steps of the last 2 runs: 0 reused, 3 built, 0 failed" in stats
    assert "100%" not in project("cache", "stats", "--runs", "1").out

    assert project("cache", "pins").out == "nothing is pinned\n"
    keys = [path.stem for path in (store / "ac").rglob("*.json")]
    pin(store, "tiny-1.0", [*keys[:1], "f" * 64])
    assert project("cache", "pins").out == "tiny-1.0  2 results, 1 of them gone\n"
    assert "pinned       tiny-1.0, " in project("cache", "stats").out

    assert project("cache", "gc", "--dry-run").out == "nothing to remove\n"
    young = project("cache", "gc", "--max-size", "1")
    assert young.code == 1
    assert young.out.startswith("nothing to remove\n")
    assert "are pinned or younger than 24 h" in young.out

    age(store, 3)
    before = sorted(store.rglob("*"))
    tried = project("cache", "gc", "--max-size", "1", "--grace-hours", "0", "--dry-run")
    assert sorted(store.rglob("*")) == before
    cut = project("cache", "gc", "--max-size", "1", "--grace-hours", "0")
    assert (
        tried.out.replace("would remove", "removed").replace("would be left", "are left")
        == cut.out
    )
    assert tried.code == cut.code
    assert cut.out.startswith(f"removed {counted(len(keys) - 1, 'result')} and ")
    assert "are left, over the 1 B asked for: " in cut.out
    assert [path.stem for path in (store / "ac").rglob("*.json")] == keys[:1]

    unpinned = project("cache", "unpin", "tiny-1.0")
    assert (unpinned.code, unpinned.out.split()[0]) == (0, "tiny-1.0")
    assert project("cache", "unpin", "tiny-1.0").code == 2
    emptied = project("cache", "gc", "--max-size", "1", "--grace-hours", "0")
    assert emptied.code == 0
    assert emptied.out.startswith("removed 1 result and ")
    assert project.run("--only", "export").ran == ["export"]


def test_logs_of_long_ago_go_when_a_run_has_work_and_not_when_it_has_none(project):
    assert project.run("--only", "export").code == 0
    runs = project.folder / "artifacts" / "runs"
    for number in range(75):
        old = runs / f"20200101T0000{number:02}.000Z-1-abcd"
        (old / "logs").mkdir(parents=True)
        (old / "events.jsonl").write_text("{}\n")
        (old / "run.json").write_text('{"request": "old", "exit_code": 0, "keys": []}')
        age(old, 60)
    stats = project("cache", "stats").out
    assert re.search(r"\nruns +76, .* of logs\n", stats)
    assert re.search(r"\nindex.db +[\d.]+ KiB: 1 finished requests, 1 recipes, 1 steps, ", stats)

    assert "up to date" in project.run("--only", "export").out
    assert len(list(runs.glob("*/logs"))) == 76
    project.edit("models/tiny.py", "width=8", "width=9")
    assert project.run("--only", "export").code == 0
    assert len(list(runs.glob("*/logs"))) == 50
    assert len(list(runs.iterdir())) == 50
    assert project("log", "tiny:export").code == 0


def test_gc_refuses_what_is_no_number(project):
    option = "--keep-days"
    project.run("--only", "export")
    kept = sorted((project.folder / "artifacts").rglob("ac/*/*.json"))
    refused = project("cache", "gc", "--keep-days", "0", option, "nan")
    assert refused.code == 2
    assert f"Invalid value for '{option}': 'nan' is not a number" in refused.err
    assert sorted((project.folder / "artifacts").rglob("ac/*/*.json")) == kept


def test_limits_of_a_store_leave_the_environments_that_other_projects_share(project, tmp_path):
    assert project.run("--only", "export").code == 0
    folder = tmp_path / "cache" / "environments" / "shared"
    folder.mkdir(parents=True)
    about = {"requirements": "/other/list.txt", "text": "jax==0.10\n"}
    (folder / "onnxbuild.json").write_text(json.dumps(about))
    folder.with_name("shared.lock").touch()
    age(folder.parent, 3)
    limits = ("--keep-days", "0", "--grace-hours", "0", "--max-size", "1")
    tried = project("cache", "gc", *limits, "--dry-run")
    assert tried.out.startswith("would remove 1 result")
    kept = "kept 1 environment, which all projects share (58 B): used in the last {} days (--environment-days)\n"
    assert tried.out.endswith(kept.format(30))
    document = json.loads(project("cache", "gc", *limits, "--json").out)
    assert (document["results"], document["environments"]) == (1, [])
    (left,) = document["kept_environments"]
    assert (left["requirements"], left["why"]) == ("/other/list.txt", "recent")
    assert folder.is_dir()

    longer = project("cache", "gc", "--environment-days", "4")
    assert longer.out == f"nothing to remove\n{kept.format(4)}"
    age(folder.parent, 40)
    assert "used in the last 60 days" in project("cache", "gc", "--keep-days", "60").out
    sentence = "remove the environment of /other/list.txt (no ONNX Runtime): 58 B, last used 40 days ago\n"
    assert project("cache", "gc", "--dry-run").out == f"would {sentence}"
    assert project("cache", "gc").out == sentence.replace("remove", "removed", 1)
    assert not folder.exists()


def test_folders_that_are_no_stores_stay_as_they_are(project):
    """A project has folders of its own that are called as those of a store: TensorBoard's runs/."""
    notes = project.write("runs/experiment/notes.txt", "mine")
    before = sorted(project.folder.iterdir())
    run = project("run", "tiny.yaml", "--store", ".")
    assert run.code == 1
    assert "is no store, and its 'runs' is not onnxbuild's" in run.err
    for verb in ("stats", "verify", "gc", "pins"):
        asked = project("cache", verb, "--store", ".")
        assert asked.code == 2
        assert "there is no store at " in asked.err
    assert project("clean", "--store", ".").out == "nothing is left over\n"
    assert project("plan", "tiny.yaml", "--store", ".").code == 0
    assert sorted(project.folder.iterdir()) == before
    assert notes.read_text() == "mine"
