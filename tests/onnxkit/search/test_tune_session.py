"""The search on simulated machines: noise, luck and drift are what it must not be fooled by."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from onnxbuild.onnxkit.search.tune_session import Compared, search_settings, thread_counts
from onnxbuild.onnxkit.sessions.settings import SessionSettings, TuneOptions
from onnxbuild.onnxkit.timing.ratios import Ratio, ratio_over

DEFAULT = SessionSettings()


def machine(cost, *, noise=0.03, rounds=30, seed=0, refuses=lambda settings: False):
    """A compare that measures a simulated machine: log-normal noise, and drift shared by a round."""
    generator = random.Random(seed)
    asked = []

    def turns(settings, drift):
        scale = cost(settings) * 1e6
        return [[scale * d * math.exp(generator.gauss(0, noise)) for _ in range(5)] for d in drift]

    def compare(best, tried, each_s):
        asked.append((best, tuple(tried), each_s))
        drift = [math.exp(generator.gauss(0, 0.2)) for _ in range(rounds)]
        base = turns(best, drift)
        ratios = [
            "refused" if refuses(each) else ratio_over([(turns(each, drift), base)])
            for each in tried
        ]
        return Compared(tuple(ratios), each_s * (len(tried) + 1))

    compare.asked = asked
    return compare


def best_at_three(settings):
    threads = settings.intra_op_threads or 4
    sleeps = {"allow": 1.0, "stop": 0.9, "never": 1.1}[settings.spinning]
    return (1 + abs(threads - 3) * 0.2) * sleeps


def test_the_best_of_a_simulated_machine_is_found_and_proven():
    found = search_settings(DEFAULT, TuneOptions(), 4, machine(best_at_three))
    assert (found.chosen.intra_op_threads, found.chosen.spinning) == (3, "stop")
    assert found.proof.high < 1
    assert found.proof.value == pytest.approx(0.9 / 1.2, rel=0.05)


def test_where_nothing_is_faster_the_default_stays():
    kept = 0
    for seed in range(12):
        found = search_settings(
            DEFAULT, TuneOptions(), 4, machine(lambda _: 1.0, noise=0.1, seed=seed)
        )
        kept += found.chosen == DEFAULT
    assert kept >= 11, "by luck alone hardly anything is proven"


def test_what_was_only_lucky_is_measured_again_and_refused():
    lucky = replace(DEFAULT, intra_op_threads=2)
    calls = []

    def compare(best, tried, each_s):
        calls.append(tuple(tried))
        proof = len(tried) == 1 and tried[0] == lucky and len(calls) > 1
        ratios = [
            Ratio(1.0, 0.97, 1.03) if proof or each != lucky else Ratio(0.9, 0.85, 0.95)
            for each in tried
        ]
        return Compared(tuple(ratios), each_s)

    found = search_settings(DEFAULT, TuneOptions(search=("threads",)), 2, compare)
    assert found.best == lucky
    assert found.chosen == DEFAULT


def test_settings_that_a_session_refuses_are_reported_and_left_out():
    refuses = lambda settings: settings.execution_mode == "parallel"  # noqa: E731
    cost = lambda settings: 0.1 if settings.execution_mode == "parallel" else 1.0  # noqa: E731
    found = search_settings(DEFAULT, TuneOptions(), 4, machine(cost, refuses=refuses))
    assert found.chosen.execution_mode == "sequential"
    modes = next(each for each in found.asked if each.question == "execution_mode")
    assert {ratio for _, ratio in modes.tried} == {"refused"}


def test_the_time_is_kept_to():
    compare = machine(best_at_three)
    search_settings(DEFAULT, TuneOptions(max_time_s=40), 4, compare)
    assert sum((len(tried) + 1) * each_s for _, tried, each_s in compare.asked) <= 40 * 1.01


def test_only_what_is_asked_for_is_varied():
    compare = machine(best_at_three)
    found = search_settings(DEFAULT, TuneOptions(search=("spinning",)), 4, compare)
    assert found.chosen == replace(DEFAULT, spinning="stop")
    assert all(each.intra_op_threads == 0 for _, tried, _ in compare.asked for each in tried)


def test_threads_are_tried_one_by_one_and_then_in_steps():
    assert thread_counts(1) == (1,)
    assert thread_counts(4) == (1, 2, 3, 4)
    assert thread_counts(64) == (1, 2, 3, 4, 5, 6, 7, 8, 12, 18, 27, 40, 60, 64)
