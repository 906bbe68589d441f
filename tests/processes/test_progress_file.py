"""How far a step is, on its way to the parent."""

import os

import pytest

from onnxbuild.core.event import StepProgress
from onnxbuild.core.graph import Step
from onnxbuild.core.ports import Job
from onnxbuild.core.recipe import Location
from onnxbuild.processes import progress_file
from onnxbuild.processes.progress_file import PROGRESS_FILE, ProgressWriter, read_progress
from onnxbuild.processes.running import Running


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress_file.time, "monotonic", lambda: now[0])
    return now


def test_it_is_written_a_few_times_a_second_and_not_in_the_first(tmp_path, clock):
    write = ProgressWriter(tmp_path)
    write(1, 9, "samples", "")
    assert read_progress(tmp_path, "b:c") is None
    clock[0] += 1.1
    write(2, 9, "samples", "best so far: ü")
    assert read_progress(tmp_path, "b:c") == StepProgress("b:c", 2, 9, "samples", "best so far: ü")
    clock[0] += 0.1
    write(3, 9, "samples", "")
    assert read_progress(tmp_path, "b:c").done == 2
    clock[0] += 0.2
    write(4, 9, "samples", "\U0001f600" * 500)
    assert read_progress(tmp_path, "b:c").done == 4


def test_the_beginning_of_a_phase_is_written_at_once(tmp_path, clock):
    write = ProgressWriter(tmp_path)
    write(0, 0, "", "decomposing")
    assert read_progress(tmp_path, "b:c") == StepProgress("b:c", 0, 0, "", "decomposing")
    write(1, 9, "samples", "")  # the first second is still the first
    assert read_progress(tmp_path, "b:c").note == "decomposing"
    clock[0] += 1.1
    write(2, 9, "samples", "")
    write(0, 0, "", "saving")
    assert read_progress(tmp_path, "b:c").note == "saving"


def test_the_phase_of_a_step_is_passed_on_once_it_has_run_for_a_second(tmp_path):
    ProgressWriter(tmp_path)(0, 0, "", "decomposing")
    step = Step("b:c", "export", {}, None, Location("r.yaml", 1, 1))
    running = Running(Job(step, None, None, {}, {}, tmp_path / "log", ""), tmp_path, since_s=100.0)
    running.heard_s = 100.0
    assert [running.progress(now_s) for now_s in (100.3, 100.9)] == [None, None]
    assert running.progress(101.1) == StepProgress("b:c", 0, 0, "", "decomposing")
    assert running.progress(101.6) is None
    assert running.progress(112.0).is_sign_of_life


@pytest.mark.parametrize(
    "content",
    ["", '[1, NaN, "s", ""]', '[1, 2, ["s"], ""]', f'[1, 2, {"[" * 900}{"]" * 900}, ""]'],
)  # fmt: skip
def test_what_no_writer_writes_is_nothing(tmp_path, content):
    (tmp_path / PROGRESS_FILE).write_text(content)
    assert read_progress(tmp_path, "b:c") is None


def test_a_pipe_in_its_place_is_nothing_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / PROGRESS_FILE)
    assert read_progress(tmp_path, "b:c") is None
