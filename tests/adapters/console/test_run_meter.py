"""How far a run is: its rate, the time left, and what counts as a step that has ended."""

from __future__ import annotations

from onnxbuild.adapters.console.run_meter import RunMeter
from onnxbuild.core.event import (
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepStarted,
)


def metered(steps: int, *events: tuple[float, object]) -> RunMeter:
    meter = RunMeter()
    meter.take(RunStarted("r", steps), 0.0)
    for now_s, event in events:
        meter.take(event, now_s)
    return meter


def started(step: str) -> StepStarted:
    return StepStarted(step, (), "")


def test_the_rate_is_of_steps_that_ran_and_the_time_left_follows_from_it():
    meter = metered(
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
    fast = metered(5, (0.0, started("c")), (0.2, StepFinished("c", 0.2, 0)))
    assert fast.pace(0.5) == "2.0 steps/s, 2 s left"


def test_nothing_is_said_before_a_step_has_ended_and_when_all_have():
    assert metered(2).pace(9.0) == ""
    assert metered(2, (0.0, StepCached("a"))).pace(9.0) == ""
    assert metered(2, (0.0, started("a"))).pace(9.0) == ""
    ended = metered(1, (0.0, started("a")), (2.0, StepFinished("a", 2.0, 0)))
    assert (ended.pace(3.0), ended.bar()) == ("", "")


def test_a_step_counts_once_however_it_ends():
    meter = metered(
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
