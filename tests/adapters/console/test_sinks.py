"""What a person reads, sentence by sentence; what a program reads, line by line."""

from __future__ import annotations

import io
import json

import pytest

from onnxbuild.adapters.console.sinks import FanOut, JsonLines, PlainLines, RunLog, sentences
from onnxbuild.core.errors import StoreError
from onnxbuild.core.event import (
    Notice,
    RunFinished,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepStarted,
    StepWaiting,
)

STARTED = StepStarted("bert:export", ("param opset: 17 -> 18", "source m.py: a -> b"), "l.log")
FAILED = StepFailed(
    "bert:export",
    "no such operator",
    "models/bert.py:3",
    "raise `opset`",
    1,
    log="runs/x/l.log",
)


@pytest.mark.parametrize(
    ("event", "verbose", "lines"),
    [
        (STARTED, False, ["run     bert:export  (param opset: 17 -> 18 (and 1 more))"]),
        (STARTED, True, ["run     bert:export  (param opset: 17 -> 18; source m.py: a -> b)"]),
        (
            StepFinished("bert:export", 2.34, 300 << 20, ("dynamo was used",)),
            False,
            ["done    bert:export  (2.3 s, 300 MiB)", "        dynamo was used"],
        ),
        (
            StepFinished("bert:export", 0.04, 1 << 20, unchanged=True),
            False,
            ["done    bert:export  (0.0 s, 1 MiB, output unchanged)"],
        ),
        (StepCached("bert:export"), False, []),
        (StepCached("bert:export"), True, ["cached  bert:export"]),
        (
            StepWaiting("bert:export"),
            False,
            ["wait    bert:export  (another run is building it)"],
        ),
        (
            StepWaiting("bert:b/check", "bert:a/check"),
            False,
            ["wait    bert:b/check  (bert:a/check, its equal, is running)"],
        ),
        (
            StepLeftOut("bert:w4/quantize", "nothing was quantized", ("bert:w4/fidelity",)),
            False,
            ["left out bert:w4/quantize: nothing was quantized"],
        ),
        (
            FAILED,
            False,
            [
                "FAILED  bert:export: no such operator",
                "        at models/bert.py:3",
                "        fix: raise `opset`",
                "        log: runs/x/l.log",
            ],
        ),
        (
            StepFailed("b:e", "killed", "b:e", "", 1, log="l.log", log_tail=("one", "two")),
            False,
            [
                "FAILED  b:e: killed",
                "        the last lines of l.log:",
                "        | one",
                "        | two",
            ],
        ),
        (
            StepBlocked("bert:check", "bert:export"),
            False,
            ["blocked bert:check  (needs bert:export)"],
        ),
        (
            Notice("model.onnx was deleted; put back"),
            False,
            ["note    model.onnx was deleted; put back"],
        ),
        (RunStarted("r1", 8), False, []),
        (RunStarted("r1", 8), True, ["run r1: 8 steps"]),
    ],
)
def test_each_event_has_its_sentences(event, verbose, lines):
    assert sentences(event, verbose=verbose) == lines


def test_json_lines_are_flat_objects_with_their_type():
    file = io.StringIO()
    sink = JsonLines(file)
    sink.emit(STARTED)
    sink.emit(RunFinished("r1", 1, 2, 0, 0, 3.5, 0))
    first, last = map(json.loads, file.getvalue().splitlines())
    assert first == {
        "type": "step_started",
        "step": "bert:export",
        "reasons": ["param opset: 17 -> 18", "source m.py: a -> b"],
        "log": "l.log",
    }
    assert last["type"] == "run_finished"
    assert last["exit_code"] == 0


def test_several_sinks_hear_the_same(tmp_path):
    lines: list[str] = []
    log = RunLog(tmp_path / "runs/r1/events.jsonl")
    FanOut([PlainLines(lines.append), log]).emit(Notice("ü"))
    log.close()
    assert lines == ["note    ü"]
    assert json.loads((tmp_path / "runs/r1/events.jsonl").read_text()) == {
        "type": "notice",
        "text": "ü",
    }


def test_a_run_log_on_a_full_disk_is_one_clear_error(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    log = RunLog(tmp_path / "full")
    with pytest.raises(StoreError, match="no space left on the disk while writing"):
        log.emit(Notice("x"))
    log.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="a file is in its way"):
        RunLog(tmp_path / "file" / "events.jsonl")
