import random
import time

import numpy as np
import pytest

from onnxbuild.onnxkit.timing.rounds import (
    SAMPLES_FILE,
    measure_turns,
    median_bounds,
    read_groups,
    read_samples,
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
