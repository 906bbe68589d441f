import random

import pytest

from onnxbuild.onnxkit.search.goals import MeasuredTrials
from onnxbuild.onnxkit.timing.ratios import Ratio, chained
from onnxbuild.onnxkit.timing.rounds import write_samples

ROUNDS, RUNS = 40, 8
TIMES_MS = {"fp32": 2.0, "int8": 1.0, "int4": 1.3}


def weather(generator, start):
    """A machine that drifts; the second group is measured when all take half as long again."""
    shifts = [start]
    for _ in range(ROUNDS - 1):
        shifts.append(shifts[-1] * generator.lognormvariate(0.002, 0.03))
    return shifts


def group(generator, names, start):
    shared = weather(generator, start)
    return {
        name: [
            [
                round(TIMES_MS[name] * s * generator.lognormvariate(0, 0.03) * 1e6)
                for _ in range(RUNS)
            ]
            for s in shared
        ]
        for name in names
    }


def trials(folder, *groups):
    write_samples(folder, {"example": groups})
    return MeasuredTrials(folder, ["example"], list(TIMES_MS))


def test_those_of_one_group_are_compared_turn_by_turn(tmp_path):
    found = trials(tmp_path, group(random.Random(0), TIMES_MS, 1.0)).ratio("int4", "int8")
    assert found.low < 1.3 < found.high
    assert found.high - found.low < 0.06


def test_those_of_two_groups_are_compared_through_the_one_that_was_in_both(tmp_path):
    generator, held, repeats = random.Random(5), 0, 40
    for _ in range(repeats):
        halves = (
            group(generator, ["fp32", "int8"], 1.0),
            group(generator, ["fp32", "int4"], 1.5),
        )
        measured = trials(tmp_path, *halves)
        found = measured.ratio("int4", "int8")
        held += found.low <= 1.3 <= found.high
        assert found.high - found.low < 0.12
    assert held >= 0.85 * repeats  # 0.95 is meant; fewer than 0.85 of 40 happens once in 70
    assert measured.ratio("fp32", "int8").value == pytest.approx(2.0, rel=0.03)
    assert measured.p50_ms("int4")["example"] > 1.3 * 1.4  # as it was: in bad weather


def test_what_shares_nothing_is_not_compared(tmp_path):
    generator = random.Random(0)
    measured = trials(
        tmp_path, group(generator, ["int8"], 1.0), group(generator, ["int4", "fp32"], 1.0)
    )
    with pytest.raises(KeyError, match="together with no trial"):
        measured.ratio("int4", "int8")


def test_a_chain_of_ratios_is_as_sure_as_both_links():
    found = chained(Ratio(2.0, 1.0, 4.0), Ratio(3.0, 1.5, 6.0))
    assert found.value == 6.0
    assert found.low == pytest.approx(6.0 / 2**2**0.5)
    assert found.high == pytest.approx(6.0 * 2**2**0.5)
    unknown = chained(Ratio(2.0, 0.0, float("inf")), Ratio(3.0, 2.9, 3.1))
    assert (unknown.value, unknown.low, unknown.high) == (6.0, 0.0, float("inf"))
