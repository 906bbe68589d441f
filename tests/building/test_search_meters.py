"""How far a search is, told by the events of its trials' steps."""

from pathlib import Path

import pytest

from onnxbuild.building.request import Request, graph_of
from onnxbuild.building.search_meters import SearchMeters
from onnxbuild.core.event import (
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepProgress,
    StepStarted,
)

ROOT = Path(__file__).parents[2]
CHOOSE = "minilm-search:mean/choose"
TRIALS = (
    "int8-dynamic",
    "int8-balanced",
    "int8-balanced-keep-5",
    "int8-balanced-keep-10",
    "int8-balanced-keep-20",
)


class Said:
    """A display that keeps what it is told."""

    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)


@pytest.fixture(scope="module")
def graph():
    return graph_of(Request((ROOT / "recipes/minilm_search.yaml",)))


@pytest.fixture
def said():
    return Said()


@pytest.fixture
def meters(graph, said):
    return SearchMeters(graph, said)


def quantize(trial):
    return f"minilm-search:mean/{trial}/quantize"


def fidelity(trial):
    return f"minilm-search:mean/{trial}/fidelity"


def ends(meters, trial, cosine):
    meters.emit(StepStarted(quantize(trial), (), ""))
    meters.emit(StepFinished(quantize(trial), 1.0, 0))
    meters.emit(StepFinished(fidelity(trial), 1.0, 0, metrics={"cosine_mean": cosine}))


def test_each_trial_that_ends_moves_the_bar_and_the_best_is_named(meters, said):
    ends(meters, TRIALS[0], 0.99)
    ends(meters, TRIALS[1], 0.999)
    ends(meters, TRIALS[2], 0.995)
    bars = [(each.done, each.note) for each in said.events]
    assert {(each.step, each.total, each.unit) for each in said.events} == {(CHOOSE, 5, "trials")}
    assert bars[:2] == [(0, ""), (0, "")], "a model alone says nothing"
    assert bars[2] == (1, "best so far: cosine 0.99000 by int8-dynamic")
    assert bars[-1] == (3, "best so far: cosine 0.99900 by int8-balanced")


def test_two_variants_that_search_the_same_trials_have_one_bar(meters, said):
    meters.emit(StepStarted(quantize(TRIALS[0]), (), ""))
    assert said.events == [StepProgress(CHOOSE, 0, 5, "trials")]


def test_cached_trials_count_once_another_runs(meters, said):
    for trial in TRIALS[:4]:
        meters.emit(StepCached(quantize(trial)))
        meters.emit(StepCached(fidelity(trial), metrics={"cosine_mean": 0.5}))
    assert said.events == [], "nothing runs: there is nothing to wait for"
    meters.emit(StepStarted(quantize(TRIALS[4]), (), ""))
    (bar,) = said.events
    assert (bar.done, bar.note) == (4, "best so far: cosine 0.50000 by int8-dynamic")


def test_what_is_not_applicable_failed_or_blocked_has_ended_without_a_figure(meters, said):
    ends(meters, TRIALS[0], 0.99)
    meters.emit(StepLeftOut(quantize(TRIALS[1]), "no such node", (fidelity(TRIALS[1]),)))
    meters.emit(StepFailed(quantize(TRIALS[2]), "it broke", "", "", 1))
    meters.emit(StepBlocked(fidelity(TRIALS[2]), quantize(TRIALS[2])))
    assert said.events[-1] == StepProgress(
        CHOOSE, 3, 5, "trials", "best so far: cosine 0.99000 by int8-dynamic"
    )
