"""Long work shows itself, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onnxbuild import Request, build
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
