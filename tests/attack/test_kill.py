"""kill -9, of the command, of what starts its steps and of a step; and many runs at once.

Only running steps are lost: the next run needs no unlock and delivers what a clean build delivers.
ONNXBUILD_KILLS=50 tries more moments than the suite has time for.
"""

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.attack import cheap, tiny
from tests.attack.command import Command, seen, started_by, wait_for_end_of

KILLS = int(os.environ.get("ONNXBUILD_KILLS", "4"))
EVENTS = 1 + 2 * len(tiny.ALL)  # of a run: its start, and of each step its start and its end
STEP_S, START_S = 0.2, 1.0  # about how long a step takes, and the interpreter and the fork server
VICTIMS = ("command", "fork server", "step")


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a clean build delivers."""
    folder = tiny.make(tmp_path_factory.mktemp("clean") / "project")
    done = Command(folder, "tiny.yaml").run()
    assert (done.code, done.ran) == (0, tiny.ALL)
    return tiny.delivered(folder / "artifacts")


def _victim(process: subprocess.Popen[str], which: str) -> psutil.Process:
    """The process to kill; the nearest to it that there is at this moment."""
    found = psutil.Process(process.pid)
    for _ in range(VICTIMS.index(which)):
        children = found.children()
        found = children[-1] if children else found
    return found


def _events(store: Path) -> int:
    """How many events a first run has reported so far."""
    return sum(path.read_bytes().count(b"\n") for path in store.glob("runs/*/events.jsonl"))


def _locked(store: Path) -> list[str]:
    held = []
    for path in (store / "locks").glob("*"):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(path.name)
    return held


def _left_behind(store: Path) -> list[Path]:
    """Bad files, and folders of runs that are gone; a single file is swept when it is an hour old."""
    folders = [path for path in (store / "tmp").iterdir() if path.is_dir()]
    return [*folders, *(store / "locks").glob("run-*"), *(store / "quarantine").iterdir()]


@pytest.mark.always
@pytest.mark.slow
@pytest.mark.parametrize("number", range(KILLS))
def test_after_a_kill_the_next_run_is_as_clean_as_a_first(
    clean, tmp_path, record_property, number
):
    dice = random.Random(number)
    command = Command(tiny.make(tmp_path / "project"), "tiny.yaml")
    store = command.folder / "artifacts"
    process = command.start()
    while process.poll() is None and _events(store) < round(EVENTS * number / KILLS):
        time.sleep(0.002)
    time.sleep(dice.random() * (STEP_S if number else START_S))
    others, which = started_by(process), VICTIMS[number % len(VICTIMS)]
    with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
        _victim(process, which).send_signal(signal.SIGKILL)
    killed = seen(process)
    record_property("killed", f"{which} after {_events(store)} events")
    assert killed.code in {0, 1, -signal.SIGKILL}, killed.texts
    if killed.code == 1:
        assert "died" in killed.texts or "killed by SIGKILL" in killed.texts
    wait_for_end_of(others)
    assert _locked(store) == []
    assert tiny.delivered(store).items() <= clean.items(), "a half-written file"

    again = command.run()
    assert again.code == 0, again.texts
    assert tiny.delivered(store) == clean
    assert _locked(store) == []
    assert not _left_behind(store)


@pytest.mark.always
@pytest.mark.slow
def test_four_cold_runs_at_once_build_each_step_once(clean, tmp_path):
    command = Command(tiny.make(tmp_path / "project"), "tiny.yaml")
    runs = [seen(each) for each in [command.begin() for _ in range(4)]]
    assert [(each.code, each.err) for each in runs] == [(0, "")] * 4
    built = Counter(event["step"] for each in runs for event in each.of("step_finished"))
    assert built == {f"tiny:{step}": 1 for step in tiny.ALL}
    assert tiny.delivered(command.folder / "artifacts") == clean
    assert command.run().ran == frozenset()


@pytest.mark.always
@pytest.mark.parametrize("built_before", [False, True], ids=["cold", "after an edit"])
def test_killed_before_any_of_its_file_operations_a_build_loses_nothing(
    scratch, server, built_before
):
    steps = [cheap.step_of("a", sources=["m"]), cheap.step_of("b", "a")]
    place = cheap.make(scratch / "place")
    (place.project / "m.py").write_text("x = 1\n")
    if built_before:
        assert server.build(place, steps).code == 0
        (place.project / "m.py").write_text("x = 2\n")
    clean = replace(place, store=scratch / "clean")
    expected = server.build(clean, steps)
    before, after = tiny.delivered(place.store), tiny.delivered(clean.store)
    spare = scratch / "spare"
    cheap.copy(place.store, spare)

    tried, killed = 0, True
    while killed:
        tried += 1
        cheap.copy(spare, place.store)
        killed = server.build(place, steps, kill_at=tried).killed
        found = tiny.delivered(place.store).items()
        assert found <= before.items() | after.items(), tried
        again = server.build(place, steps)
        assert (again.code, again.outputs) == (0, expected.outputs), tried
        assert tiny.delivered(place.store) == after, tried
        assert _locked(place.store) == []
        if again.operations > cheap.OF_A_GLANCE:  # else there is nothing to do, not even to sweep
            assert not _left_behind(place.store), tried
    assert tried > 50
