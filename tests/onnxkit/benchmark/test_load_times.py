"""Load times: what is reported of them, and that each is of a process of its own."""

import os

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.benchmark.candidate import Contender, LoadCost
from onnxbuild.onnxkit.benchmark.interleave import load_report, measure_loads

FEEDS = {"x": np.zeros(1, "float32")}


def costs(*seconds):
    return [LoadCost(each, 1.0, 1000, 900) for each in seconds]


def test_medians_are_reported_and_how_many_times_as_fast_each_loads():
    found = {
        "portable": costs(0.4, 0.42, 0.39, 0.41, 0.4, 0.4, 9.0),
        "optimized": costs(0.1, 0.11, 0.1, 0.1, 0.09, 0.1, 0.1),
    }
    report = load_report(found, "portable")
    assert report["portable"] == {
        "load_ms": 400.0, "first_inference_ms": 1.0, "peak_rss_growth_bytes": 1000,
    }  # fmt: skip
    value, low, high = report["optimized"]["speedup"]
    assert low <= value <= high
    assert 3.5 < value < 4.5
    assert low > 1


def test_a_model_next_to_itself_is_not_faster_than_its_own_interval():
    noise = np.random.default_rng(0).lognormal(-1, 0.1, (2, 7))
    report = load_report({"a": costs(*noise[0]), "b": costs(*noise[1])}, "a")
    _, low, high = report["b"]["speedup"]
    assert low < 1 < high


def test_each_load_is_in_a_process_of_its_own(tmp_path):
    def load():
        with (tmp_path / "pids").open("a") as file:
            file.write(f"{os.getpid()}\n")
        return lambda feeds: lambda: feeds

    found = measure_loads([Contender("a", load), Contender("b", load)], FEEDS, "", rounds=2)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == len(set(pids)) == 4
    assert str(os.getpid()) not in pids
    assert {name: len(each) for name, each in found.items()} == {"a": 2, "b": 2}


def test_one_that_does_not_load_is_an_error_of_the_step():
    def load():
        raise StepError("no such model", where="test:step")

    with pytest.raises(StepError, match="no such model"):
        measure_loads([Contender("a", load)], FEEDS, "test:step")
