import random
import sys
import threading
import time

import numpy as np
import pytest

from onnxbuild.onnxkit.timing.concurrency import measure_throughput, run_window
from onnxbuild.onnxkit.timing.ratios import is_ranked, percentile_ratio, ratio_of, ratio_over
from onnxbuild.onnxkit.timing.rounds import (
    SAMPLES_FILE,
    Cycle,
    burst,
    measure_turns,
    median_bounds,
    read_groups,
    read_samples,
    runs_in,
    summarize_turns,
    warmup_rounds,
    write_samples,
)


def measured(runners, **options):
    bounds = {"warmup": 0, "min_samples": 3, "max_time_s": 0.05, **options}
    turns = measure_turns(runners, **bounds)
    return {name: summarize_turns(each) for name, each in turns.items()}


def test_the_slower_of_two_is_measured_as_the_slower():
    took_ms = []

    def slow():
        began_s = time.perf_counter()
        time.sleep(0.02)
        took_ms.append((time.perf_counter() - began_s) * 1e3)

    found = measured({"slow": slow, "fast": lambda: None})
    assert min(took_ms) <= found["slow"].p50_ms <= max(took_ms) + 1
    assert found["fast"].p50_ms < 1


def test_each_is_measured_at_least_as_often_as_asked_before_it_ends_early():
    found = measured(
        {"a": lambda: time.sleep(0.06)}, min_samples=4, max_time_s=9, settled=lambda _: True
    )
    assert 8 <= found["a"].samples < 16  # it is asked after a tenth of the time
    found = measured(
        {"a": lambda: time.sleep(0.06)}, min_samples=16, max_time_s=9, settled=lambda _: True
    )
    assert found["a"].samples == 16


def test_a_turn_of_a_cycle_has_all_its_calls_as_often():
    called = []
    cycle = Cycle([lambda n=n: called.append(n) for n in range(3)])
    assert (
        len(burst(cycle, discard=True)) == 21
    )  # the first multiple of three that is not below 20
    assert [called.count(n) for n in range(3)] == [8, 7, 7]
    slow = Cycle([lambda: time.sleep(0.03)] * 3)
    assert len(burst(slow, discard=False)) == 3
    assert runs_in(slow, 0.01) == 3


def test_slow_runs_end_when_the_time_is_up_four_times_over():
    begin_s = time.perf_counter()
    found = measured({"a": lambda: time.sleep(0.2)}, warmup=3, min_samples=20, max_time_s=0.1)
    assert found["a"].samples == 2  # after one run of warm-up
    assert time.perf_counter() - begin_s < 1.5


def test_time_bounds_the_measurement():
    turns = measure_turns(
        {"a": lambda: time.sleep(0.06), "b": lambda: time.sleep(0.06)},
        warmup=0, min_samples=3, max_time_s=0.5, settled=lambda _: False,
    )  # fmt: skip
    assert [len(each) for each in turns.values()] in (
        [6, 6],
        [7, 7],
    )  # a turn takes 0.07 s or more


@pytest.mark.slow
def test_runners_take_turns_in_an_order_that_changes_and_repeats_with_the_seed():
    def order(seed):
        seen = []
        runners = {name: lambda name=name: (seen.append(name), time.sleep(0.06)) for name in "abc"}
        measured(runners, min_samples=5, max_time_s=0.35, seed=seed)
        turns = "".join(seen)
        return [name for n, name in enumerate(turns) if n == 0 or turns[n - 1] != name]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_it_ends_when_enough_is_known_and_asks_for_that_now_and_then():
    asked = []

    def enough(turns):
        asked.append(len(turns["a"]))
        return len(asked) == 3

    measured({"a": lambda: None}, max_time_s=5, settled=enough)
    assert len(asked) == 3
    assert asked == sorted(set(asked))


def test_warm_up_runs_are_not_samples():
    runs = []
    found = measured({"a": lambda: (runs.append(1), time.sleep(0.06))}, warmup=4, max_time_s=1)
    assert len(runs) == 4 + found["a"].samples  # none is thrown away: the warm-up was slow


def test_percentiles_lie_between_the_nearest_ranks():
    found = summarize_turns([[1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000]])
    assert (found.p50_ms, found.mean_ms) == (3.0, 3.0)
    assert found.p90_ms == pytest.approx(4.6)
    assert found.p99_ms == pytest.approx(4.96)
    assert found.std_ms == pytest.approx(2**0.5, abs=1e-4)


def test_a_turn_counts_alike_however_many_runs_it_has():
    """A burst in a bad moment is cut short: its runs are few, and no less true."""
    found = summarize_turns([[MS] * 20, *[[50 * MS]] * 3])
    assert found.p50_ms == 50
    assert found.samples == 23
    assert found.mean_ms == pytest.approx((1 + 3 * 50) / 4)


MS = 1_000_000


def is_stable(*turn_ms):
    return summarize_turns([[round(ms * MS)] * 5 for ms in turn_ms]).stable


def test_a_median_is_stable_within_5_percent_however_noisy_single_runs_are():
    assert is_stable(*[10, 10.4, 9.8, 10.1] * 10)
    assert not is_stable(*[10, 14, 8, 12] * 4)
    assert summarize_turns([[10 * MS, 10 * MS, 90 * MS]] * 16).stable


def test_a_shift_that_lasts_is_not_stable_and_a_bad_moment_is_no_matter():
    assert not is_stable(*[10] * 20, *[12] * 20)
    assert not is_stable(*[10 + n / 10 for n in range(40)])
    assert is_stable(*[10] * 30, *[50] * 6)


def test_bounds_hold_the_median_as_often_as_they_say():
    generator = random.Random(0)
    held = 0
    for _ in range(400):
        low, high, is_known = median_bounds([generator.gauss(0, 1) for _ in range(64)])
        assert is_known
        held += low <= 0 <= high
    assert held >= 0.95 * 400


def test_turns_of_any_length_read_back(tmp_path):
    turns = [[1, 2, 3], [4], [5, 6]]
    write_samples(tmp_path, {"batch=1,sequence=8": [{"a/b": turns, "c": [[7]]}]})
    assert read_samples(tmp_path, "batch=1,sequence=8", "a/b") == turns
    assert read_samples(tmp_path, "batch=1,sequence=8", "c") == [[7]]
    with pytest.raises(KeyError):
        read_samples(tmp_path, "batch=1", "c")


def test_groups_read_back_one_by_one_and_all_together(tmp_path):
    groups = [{"base": [[1, 2], [3]], "a": [[4], [5]]}, {"base": [[6]], "b": [[7, 8]]}]
    write_samples(tmp_path, {"example": groups})
    assert read_groups(tmp_path, "example", "base") == [[[1, 2], [3]], [[6]]]
    assert read_groups(tmp_path, "example", "a") == [[[4], [5]], []]
    assert read_groups(tmp_path, "example", "b") == [[], [[7, 8]]]
    assert read_samples(tmp_path, "example", "base") == [[1, 2], [3], [6]]


def test_one_group_is_written_without_a_word_on_groups(tmp_path):
    write_samples(tmp_path, {"example": [{"a": [[1], [2, 3]]}]})
    with np.load(tmp_path / SAMPLES_FILE) as arrays:
        assert sorted(arrays) == ["example/a/runs_ns", "example/a/sizes"]
    assert read_groups(tmp_path, "example", "a") == [[[1], [2, 3]]]


def rounds(*ms):
    return [[round(each * 1e6)] * 3 for each in ms]


def wave(count):
    return [10 + 0.1 * (n % 3) for n in range(count)]


def test_a_slow_start_is_left_out():
    slow = [20, 18, 16, 14, 13, 12, 11.5, 11, 10.5, 10.2]
    assert warmup_rounds({"a": rounds(*slow, *wave(50))}) == 10


def test_what_is_steady_is_kept():
    assert warmup_rounds({"a": rounds(*wave(60))}) <= 5


def test_half_of_it_at_most_is_left_out_however_it_goes_on():
    falling = [100 - n for n in range(60)]
    assert warmup_rounds({"a": rounds(*falling)}) <= 30


def test_clients_ask_at_once_and_each_as_soon_as_it_is_answered():
    inside, most = [], []
    lock = threading.Lock()

    def run():
        with lock:
            inside.append(1)
            most.append(len(inside))
        time.sleep(0.005)
        with lock:
            inside.pop()

    one, four = measure_throughput({"a": [run]}, [1, 4], window_s=0.1, windows=3)["a"]
    assert (one.clients, four.clients) == (1, 4)
    assert max(most) == 4
    for each in (one, four):
        assert each.p50_ms >= 5
        assert each.p50_ms <= each.p99_ms
        assert 0 < each.low <= each.runs_per_s <= each.high <= each.clients / 0.005


def test_the_99th_percentile_of_few_runs_is_not_the_slowest():
    took_ms = []

    def run():
        began_s = time.perf_counter()
        time.sleep(0.1 if len(took_ms) == 5 else 0.002)
        took_ms.append((time.perf_counter() - began_s) * 1e3)

    (found,) = measure_throughput({"a": [run]}, [1], window_s=0.2, windows=1)["a"]
    assert len(took_ms) < 100
    assert found.p50_ms < found.p99_ms < max(took_ms)


def test_each_client_has_its_own_call_where_there_are_several():
    seen = set()
    calls = [lambda n=n: (seen.add((n, threading.get_ident())), time.sleep(0.001)) for n in (0, 1)]
    measure_throughput({"a": calls}, [2], window_s=0.02, windows=1)
    assert {n for n, _ in seen} == {0, 1}
    assert len(seen) == 2


def test_what_a_call_raises_is_raised():
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        measure_throughput({"a": [fail]}, [1, 2], window_s=0.02, windows=1)


@pytest.fixture
def greedy():
    """Python threads give each other way after a minute only, as on a machine that is busy."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(60)
    yield
    sys.setswitchinterval(before_s)


def test_a_window_begins_with_its_clients_however_late_the_thread_that_started_them_wakes(greedy):
    calls = []

    def run():
        calls.append(time.perf_counter())
        if len(calls) == 1:
            time.sleep(
                0.05
            )  # before the window: the thread that waits for its clients does so now
        while time.perf_counter() - calls[-1] < 0.005:
            pass

    runs, elapsed_s = run_window([run], 0.05)
    assert sum(runs) <= elapsed_s


def test_each_client_is_answered_at_least_once():
    runs, elapsed_s = run_window([lambda: time.sleep(0.01)] * 2, 0.0)
    assert len(runs) == 2
    assert elapsed_s >= 0.01


ROUNDS, RUNS = 40, 12


def measured_ratio(factor, weather, generator):
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
        one, other = (measured_ratio(1.0, shared, generator) for _ in range(2))
        found = ratio_of(one, other) if percent == 50 else percentile_ratio(one, other, percent)
        held += found.low <= 1 <= found.high
    assert held >= 0.88 * repeats  # 0.95 is meant; fewer than 0.88 of 60 happens once in 100


def test_what_both_suffer_does_not_blur_the_ratio():
    generator = random.Random(1)
    shared = drifting(generator)
    found = ratio_of(
        measured_ratio(1.3, shared, generator), measured_ratio(1.0, shared, generator)
    )
    assert found.low < 1.3 < found.high
    assert found.high - found.low < 0.06
    assert max(shared) > 1.2 * min(shared)


def test_a_slow_tail_shows_in_its_percentile_alone():
    generator = random.Random(2)
    plain = measured_ratio(1.0, steady(0), generator)
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
    fast = measured_ratio(1.0, steady(0), generator)
    rough = [[round(run * generator.uniform(0.7, 1.4)) for run in turn] for turn in fast]
    rough = [[round(run * generator.uniform(0.5, 2.0)) for run in turn] for turn in rough]
    slow = [[3 * run for run in turn] for turn in rough]
    assert is_ranked({"a": fast, "b": measured_ratio(1.1, steady(0), generator)})
    assert is_ranked({"a": fast, "b": slow})
    assert not is_ranked({"a": fast, "b": [[round(0.7 * run) for run in turn] for turn in rough]})
    assert not is_ranked({"a": fast[:5], "b": fast[:5]})
