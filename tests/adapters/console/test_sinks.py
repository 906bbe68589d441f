"""What a person reads, sentence by sentence; what a program reads, line by line."""

import io
import json

import pytest

from onnxbuild.adapters.console.sinks import JsonLines, PlainLines, RunLog
from onnxbuild.core.errors import StoreError
from onnxbuild.core.event import (
    Notice,
    RunFinished,
    RunStarted,
    StepFinished,
    StepProgress,
    StepStarted,
)

STARTED = StepStarted("bert:export", ("param opset: 17 -> 18", "source m.py: a -> b"), "l.log")


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
        "last_s": 0.0,
    }
    assert last["type"] == "run_finished"
    assert last["exit_code"] == 0


def test_a_run_log_on_a_full_disk_is_one_clear_error(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    log = RunLog(tmp_path / "full")
    with pytest.raises(StoreError, match="no space left on the disk while writing"):
        log.emit(Notice("x"))
    log.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="a file is in its way"):
        RunLog(tmp_path / "file" / "events.jsonl")


def test_how_far_a_step_is_is_one_line_of_json_a_second():
    file = io.StringIO()
    sink = JsonLines(file)
    for done in range(5):
        sink.emit(StepProgress("bert:calibrate", done, 9, "samples"))
    sink.emit(StepProgress("bert:tune", 1, 9, "s"))
    steps = [json.loads(line)["step"] for line in file.getvalue().splitlines()]
    assert steps == ["bert:calibrate", "bert:tune"]


def test_a_long_run_has_a_line_every_half_minute_with_its_rate_and_the_time_left():
    lines: list[str] = []
    now = [0.0]
    sink = PlainLines(lines.append, monotonic_s=lambda: now[0])
    sink.emit(RunStarted("r", 10))
    for number in range(8):
        sink.emit(StepStarted(f"t:{number}", ("never built here",), ""))
        now[0] += 10.0
        sink.emit(StepFinished(f"t:{number}", 10.0, 1 << 20))
    said = [line for line in lines if line.startswith("running")]
    assert said == [
        "running 3 of 10 steps have ended, 6.0 steps/min, 1 min 10 s left",
        "running 6 of 10 steps have ended, 6.0 steps/min, 40 s left",
    ]


def test_a_step_that_runs_long_has_a_line_every_half_minute_in_a_log():
    lines: list[str] = []
    now = [0.0]
    sink = PlainLines(lines.append, monotonic_s=lambda: now[0])
    sink.emit(StepStarted("bert:calibrate", ("never built here",), ""))
    sink.emit(StepStarted("bert:export", ("never built here",), ""))
    for second in range(70):
        now[0] = second
        sink.emit(StepProgress("bert:calibrate", 2 * second, 300, "samples"))
        sink.emit(StepProgress("bert:export", 0, 0, ""))
    sink.emit(StepFinished("bert:calibrate", 69.0, 1 << 20))
    assert lines == [
        "running bert:calibrate  (30 s: 60 of 300 samples, 2.0/s, 2 min 0 s left)",
        "running bert:export  (30 s)",
        "running bert:calibrate  (1 min 0 s: 120 of 300 samples, 2.0/s, 1 min 30 s left)",
        "running bert:export  (1 min 0 s)",
        "done    bert:calibrate  (69.0 s, 1 MiB)",
    ]


def test_a_step_without_a_count_says_its_phase_and_what_it_took_last_time():
    lines: list[str] = []
    now = [0.0]
    sink = PlainLines(lines.append, monotonic_s=lambda: now[0])
    sink.emit(StepStarted("bert:export", (), "", last_s=41.6))
    sink.emit(StepStarted("bert:check", (), "", last_s=0.4))
    sink.emit(StepProgress("bert:export", 0, 0, "", "dynamo: decomposing"))
    now[0] = 31.0
    sink.emit(StepProgress("bert:export", 0, 0, ""))
    sink.emit(StepProgress("bert:check", 0, 0, ""))
    now[0] = 62.0
    sink.emit(StepProgress("bert:export", 8, 10, "points"))
    assert lines == [
        "running bert:export  (31 s: dynamo: decomposing; took 42 s last time)",
        "running bert:check  (31 s)",
        "running bert:export  (1 min 2 s: 8 of 10 points)",
    ]
