import random

import pytest

from onnxbuild.onnxkit.timing.ratios import is_ranked, percentile_ratio, ratio_of, ratio_over

ROUNDS, RUNS = 40, 12


def measured(factor, weather, generator):
    """Turns of a runner that takes `factor` ms, in a weather that all share."""
    return [
        [round(factor * shift * generator.lognormvariate(0, 0.03) * 1e6) for _ in range(RUNS)]
        for shift in weather
    ]


def steady(_):
    return [1.0] * ROUNDS


def drifting(generator):
    shifts = [1.0]
    for _ in range(ROUNDS - 1):
        shifts.append(shifts[-1] * generator.lognormvariate(0.005, 0.03))
    return shifts


def spiky(generator):
    return [generator.choice([1.0] * 8 + [1.5, 4.0]) for _ in range(ROUNDS)]


@pytest.mark.parametrize("weather", [steady, drifting, spiky])
@pytest.mark.parametrize("percent", [50, 90])
def test_a_model_against_itself_gives_1_within_the_interval_as_often_as_it_says(weather, percent):
    generator = random.Random(7)
    held, repeats = 0, 60
    for _ in range(repeats):
        shared = weather(generator)
        one, other = (measured(1.0, shared, generator) for _ in range(2))
        found = ratio_of(one, other) if percent == 50 else percentile_ratio(one, other, percent)
        held += found.low <= 1 <= found.high
    assert held >= 0.88 * repeats  # 0.95 is meant; fewer than 0.88 of 60 happens once in 100


def test_what_both_suffer_does_not_blur_the_ratio():
    generator = random.Random(1)
    shared = drifting(generator)
    found = ratio_of(measured(1.3, shared, generator), measured(1.0, shared, generator))
    assert found.low < 1.3 < found.high
    assert found.high - found.low < 0.06
    assert max(shared) > 1.2 * min(shared)


def test_a_slow_tail_shows_in_its_percentile_alone():
    generator = random.Random(2)
    plain = measured(1.0, steady(0), generator)
    tail = [[run * 3 if n == 0 else run for n, run in enumerate(turn)] for turn in plain]
    assert ratio_of(tail, plain).high < 1.05
    assert percentile_ratio(tail, plain, 95).low > 2.5


def test_several_points_give_their_geometric_mean():
    one = [[2_000_000]] * 10
    other = [[1_000_000]] * 10
    found = ratio_over([(one, other), (other, one), (one, other)])
    assert found.value == pytest.approx(2 ** (1 / 3))
    assert found.low == pytest.approx(found.value)


def test_a_percentile_that_falls_between_two_runs_is_halfway():
    low, high = ([value] * length for value, length in zip((100, 300), (7, 3), strict=True))
    found = percentile_ratio([low, high] * 6, [[100]] * 12, 50)
    assert found.value == pytest.approx(2), "each turn counts alike"


def test_too_few_rounds_know_no_interval():
    found = ratio_of([[3]] * 5, [[2]] * 5)
    assert (found.value, found.low) == (pytest.approx(1.5), 0.0)
    assert found.high == float("inf")


def test_a_ranking_waits_for_near_ratios_only():
    generator = random.Random(3)
    fast = measured(1.0, steady(0), generator)
    rough = [[round(run * generator.uniform(0.7, 1.4)) for run in turn] for turn in fast]
    rough = [[round(run * generator.uniform(0.5, 2.0)) for run in turn] for turn in rough]
    slow = [[3 * run for run in turn] for turn in rough]
    assert is_ranked({"a": fast, "b": measured(1.1, steady(0), generator)})
    assert is_ranked({"a": fast, "b": slow})
    assert not is_ranked({"a": fast, "b": [[round(0.7 * run) for run in turn] for turn in rough]})
    assert not is_ranked({"a": fast[:5], "b": fast[:5]})
