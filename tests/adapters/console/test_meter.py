"""Bars, rates and the time left."""

import pytest

from onnxbuild.adapters.console.meter import Meter, RunMeter, bar, duration, size
from onnxbuild.core.event import (
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepProgress,
    StepStarted,
)


def metered(*reports, unit="samples", total=300):
    meter = Meter()
    for now_s, done in reports:
        meter.take(StepProgress("b:c", done, total, unit), now_s)
    return meter


@pytest.mark.parametrize(
    ("meter", "now_s", "words"),
    [
        (metered((0, 10)), 0, "10 of 300 samples"),
        (metered((0, 0), (10, 120)), 15, "120 of 300 samples, 12/s, 10 s left"),
        (metered((0, 0), (10, 120), total=0), 10, "120 samples, 12/s"),
        (
            metered((0, 0), (2, 4 << 20), unit="bytes", total=8 << 20),
            2,
            "4.0 MiB of 8.0 MiB, 2.0 MiB/s, 2 s left",
        ),
        (metered((0, 0), (10, 300), (11, 0), (12, 10)), 12, "10 of 300 samples, 10/s, 29 s left"),
    ],
)
def test_count_rate_and_time_left(meter, now_s, words):
    assert meter.words(now_s) == words


def test_where_items_get_slower_no_time_is_said_rather_than_a_later_one():
    reports = [(0, 0), (1, 100), (10, 101)]
    assert metered(*reports[:2]).words(1) == "100 of 300 samples, 100/s, 2 s left"
    assert metered(*reports).words(10) == "101 of 300 samples, 10/s"
    assert metered(*reports, (60, 102)).left_s(60) is None
    assert (
        metered(*reports, unit="bytes").words(10)
        == "101 bytes of 300 bytes, 10 bytes/s, 20 s left"
    )


def test_what_is_done_and_the_best_so_far_follow():
    meter = Meter()
    assert not meter
    meter.take(StepProgress("b:tune", 6, 20, "s", "best so far: {spinning: stop}"), 0)
    assert meter
    assert meter.line(0) == "at most 14 s left; best so far: {spinning: stop}"


def test_a_phase_has_no_count_and_a_count_after_it_begins_anew():
    meter = Meter()
    meter.take(StepProgress("b:e", 0, 0, "", "saving the model"), 0)
    assert (meter.words(9), meter.line(9)) == ("", "saving the model")
    assert not meter.is_of_known_end()
    meter.take(StepProgress("b:e", 2, 4, "points"), 10)
    assert meter.words(10) == "2 of 4 points"
    assert meter.is_of_known_end()


@pytest.mark.parametrize(("done", "total", "drawn"), [(0, 8, "────"), (4, 8, "━━──"), (3, 0, "")])
def test_a_bar_is_filled_by_halves(done, total, drawn):
    assert bar(done, total, cells=4) == drawn


def test_durations_and_sizes_are_for_people():
    assert [duration(each) for each in (0, 0.2, 7.6, 61, 3700)] == [
        "1 s", "1 s", "8 s", "1 min 1 s", "1 h 1 min",
    ]  # fmt: skip
    assert [size(each) for each in (12, 2048, 3 << 20, 5 << 30)] == [
        "12 bytes", "2.0 KiB", "3.0 MiB", "5.0 GiB",
    ]  # fmt: skip


def run_metered(steps: int, *events: tuple[float, object]) -> RunMeter:
    meter = RunMeter()
    meter.take(RunStarted("r", steps), 0.0)
    for now_s, event in events:
        meter.take(event, now_s)
    return meter


def started(step: str) -> StepStarted:
    return StepStarted(step, (), "")


def test_the_rate_is_of_steps_that_ran_and_the_time_left_follows_from_it():
    meter = run_metered(
        12,
        (0.0, StepCached("a")),
        (0.0, StepCached("b")),
        (1.0, started("c")),
        (1.0, started("d")),
        (31.0, StepFinished("c", 30.0, 0)),
        (31.1, StepFinished("d", 30.1, 0)),
    )
    assert (meter.cached, meter.ended, meter.left) == (2, 2, 8)
    assert meter.pace(61.0) == "2.0 steps/min, 4 min 0 s left"
    assert meter.bar() == "━╸──────"
    fast = run_metered(5, (0.0, started("c")), (0.2, StepFinished("c", 0.2, 0)))
    assert fast.pace(0.5) == "2.0 steps/s, 2 s left"


def test_nothing_is_said_before_a_step_has_ended_and_when_all_have():
    assert run_metered(2).pace(9.0) == ""
    assert run_metered(2, (0.0, StepCached("a"))).pace(9.0) == ""
    assert run_metered(2, (0.0, started("a"))).pace(9.0) == ""
    ended = run_metered(1, (0.0, started("a")), (2.0, StepFinished("a", 2.0, 0)))
    assert (ended.pace(3.0), ended.bar()) == ("", "")


def test_a_step_counts_once_however_it_ends():
    meter = run_metered(
        6,
        (0.0, StepCached("gate")),
        (0.0, StepFailed("gate", "over the bound", "", "", 3)),
        (0.0, started("other")),
        (1.0, StepFinished("other", 1.0, 0, fails=True)),
        (1.0, StepFailed("other", "over the bound", "", "", 3)),
        (1.0, StepBlocked("package", "gate")),
        (1.0, StepLeftOut("odd", "not applicable", ("after",))),
    )
    assert (meter.cached, meter.ended, meter.left) == (1, 3, 2)
    meter.take(RunStarted("next", 3), 5.0)
    assert (meter.cached, meter.ended, meter.left) == (0, 0, 3)
