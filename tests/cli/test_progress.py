"""Long work shows itself, and changes nothing."""

import json
import re
from pathlib import Path

import pytest

from onnxbuild import Request, build
from onnxbuild.adapters.console.meter import last_time
from tests.cli.conftest import Project, make_project
from tests.terminal import Terminal

pytestmark = pytest.mark.slow

DATA = '''

def slow_data():
    """Twenty samples, each of which takes its time."""
    import time

    import numpy

    for number in range(20):
        time.sleep(0.2)
        yield {"input": numpy.full((2, 4), number, numpy.float32)}
'''
CALIBRATED = """\
calibration: {data: models/tiny.py:slow_data, samples: 20}
"""
ONLY = ("tiny.yaml", "--only", "int8/calibrate")


@pytest.fixture
def slow(tmp_path) -> Project:
    made = make_project(tmp_path / "project")
    made.edit("tiny.yaml", "quantization: {fp32: none}\n", "quantization: {int8: static}\n")
    made.edit("tiny.yaml", "version: 1\n", f"version: 1\n{CALIBRATED}")
    made.edit("models/tiny.py", "\n\ndef load", f"{DATA}\n\ndef load")
    return made


def keys(store: Path) -> set[str]:
    return {path.name for path in store.glob("ac/*/*.json")}


def test_a_calibration_says_how_far_it_is_and_its_key_and_result_know_nothing_of_it(slow):
    done = slow("run", *ONLY, "--json")
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.out.splitlines()]
    said = [each for each in events if each["type"] == "step_progress" and each["unit"]]
    assert len(said) >= 2
    assert {(each["step"], each["total"], each["unit"]) for each in said} == {
        ("tiny:int8/calibrate", 20, "samples")
    }
    assert [each["done"] for each in said] == sorted(each["done"] for each in said)
    logs = (slow.folder / "artifacts").glob("runs/*/events.jsonl")
    assert not any("step_progress" in log.read_text() for log in logs)
    # nobody looks on: the same keys, and the same bytes
    request = Request(
        (slow.folder / "tiny.yaml",), ("int8/calibrate",), store=str(slow.folder / "b")
    )
    assert build(request).exit_code == 0
    assert keys(slow.folder / "artifacts") == keys(slow.folder / "b")
    blobs = [{path.name for path in (slow.folder / s / "cas").rglob("*") if path.is_file()} for s in ("artifacts", "b")]  # fmt: skip
    assert blobs[0] == blobs[1]


def test_a_terminal_has_a_bar_with_a_rate_and_the_time_left(slow):
    terminal = Terminal(("run", *ONLY), slow.folder)
    try:
        assert terminal.end() == 0
    finally:
        terminal.close()
    bars = [
        line for line in terminal.all.splitlines() if "tiny:int8/calibrate" in line and "━" in line
    ]
    assert bars, terminal.all
    assert any(
        " of 20 samples, " in line and "/s, " in line and " s left" in line for line in bars
    )
    assert max(map(len, bars)) <= 80
    whole = (
        r"[━╸─]{8} 0 cached, [1-9] ended, \d running, \d to go, [\d.]+ steps/(min|s), [\w ]+ left"
    )
    runs = [line for line in terminal.all.splitlines() if re.fullmatch(whole, line)]
    assert runs, terminal.all
    assert max(map(len, runs)) <= 80


SLOWLY = "    import time\n    time.sleep(2.1)\n"


def test_an_export_says_its_phase_and_what_it_took_last_time(tmp_path):
    made = make_project(tmp_path / "project")
    only = ("tiny.yaml", "--only", "export")
    made.edit("models/tiny.py", "    torch.manual_seed(0)", SLOWLY + "    torch.manual_seed(0)")
    done = made("run", *only, "--json")
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.out.splitlines()]
    said = [each for each in events if each["type"] == "step_progress" and each["note"]]
    assert said[0] == {
        "type": "step_progress", "step": "tiny:export", "done": 0.0, "total": 0.0, "unit": "",
        "note": "loading the model",
    }  # fmt: skip
    assert [each["last_s"] for each in events if each["type"] == "step_started"] == [0.0]
    took_s = next(each["wall_s"] for each in events if each["type"] == "step_finished")
    made.edit("models/tiny.py", "time.sleep(2.1)", "time.sleep(2.2)")
    terminal = Terminal(("run", *only), made.folder)
    try:
        assert terminal.end() == 0
    finally:
        terminal.close()
    drawn = [line for line in terminal.all.splitlines() if "loading the model" in line]
    assert any("tiny:export" in line for line in drawn), terminal.all
    assert last_time(took_s) in terminal.all
    assert max(map(len, drawn)) <= 80


@pytest.fixture
def exported(tmp_path) -> Project:
    made = make_project(tmp_path / "project")
    made.edit("tiny.yaml", "benchmark: {max_time_s: 0.1, min_samples: 3}\n", "")
    done = made("run", "tiny.yaml", "--only", "export")
    assert done.code == 0, done.out
    return made


def test_reading_the_store_has_a_bar_on_a_terminal(exported):
    """Of a store that takes any machine seconds to read: once the bar is drawn, Ctrl-C ends it."""
    blob = exported.folder / "artifacts/cas/sha256/ab" / f"ab{'0' * 62}"
    blob.parent.mkdir(exist_ok=True)
    with blob.open("wb") as file:
        file.truncate(64 << 30)
    terminal = Terminal(("cache", "verify"), exported.folder)
    try:
        terminal.until("cache verify", " of 64.0 GiB, ", "/s, ", " left")
        terminal.press("\x03")
        assert terminal.end() == 130, terminal.all
    finally:
        terminal.close()
    drawn = (
        r"cache verify +[\d.]+ s [━╸─]{16}(\n  | )"
        r"[\d.]+ [KMG]iB of 64\.0 GiB, [\d.]+ [KMG]iB/s, [\w ]+ left$"
    )
    assert re.search(drawn, terminal.all, re.MULTILINE), terminal.all
    assert max(map(len, terminal.all.splitlines())) <= 80
