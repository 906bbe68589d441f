import sys
import threading
import time

import pytest

from onnxbuild.onnxkit.timing.concurrency import measure_throughput, run_window


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
