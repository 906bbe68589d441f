from collections import namedtuple

import numpy as np
import pytest

from onnxbuild.onnxkit.accuracy.user_metric import Resampling, halves_of, spread_of

Spans = namedtuple("Spans", "starts ends")  # noqa: PYI024 - as a data callable may yield it


class Table:
    """What pandas has for a column: `[...]` takes rows by their index, `iloc` by their place."""

    def __init__(self, values, index):
        self.values, self.index, self.shape = list(values), list(index), (len(values),)

    def __getitem__(self, names):
        return Table([self.values[self.index.index(name)] for name in names], names)

    @property
    def iloc(self):
        table = self

        class Places:
            def __getitem__(self, rows):
                found = [table.index[row] for row in rows]
                return Table([table.values[row] for row in rows], found)

        return Places()


def batches(count, size):
    """Outputs of which each row is its number, a batch after the other."""
    rows = np.arange(count, dtype=np.float64)
    return [{"y": rows[n : n + size]} for n in range(0, count, size)]


def sizes(outputs):
    return [len(each["y"]) for each in outputs]


def test_a_metric_that_computes_in_place_gets_the_data_as_they_are_each_time():
    outputs = batches(40, 1)
    labels = [float(n) for n in range(40)]

    def in_place(some, their):
        for each in some:
            each["y"] += 1
        their.clear()
        return float(np.mean([each["y"].mean() for each in some]))

    resampling = Resampling(outputs, labels, sizes(outputs))
    assert resampling.unit == "batch"
    assert in_place(*resampling.whole()) == 20.5
    assert halves_of(resampling, in_place) == [20.0, 21.0]
    spread = spread_of(resampling, in_place, count=100, confidence=0.95, baseline=None)
    low, high = spread.score
    assert low < 20.5 < high
    assert in_place(*resampling.whole()) == 20.5


def test_rows_of_a_table_are_taken_by_their_place():
    outputs = batches(40, 10)
    index = list(range(40))[::-1]  # as after a shuffle: each name is a row's, another's place
    truth = Table([float(n) for n in range(40)], index)
    labels = [truth.iloc[range(n, n + 10)] for n in range(0, 40, 10)]

    def right(some, their):
        pairs = zip(some, their, strict=True)
        return float(np.mean([np.mean(one["y"] == other.values) for one, other in pairs]))

    resampling = Resampling(outputs, labels, sizes(outputs))
    assert resampling.unit == "sample"
    assert halves_of(resampling, right) == [1.0, 1.0]
    spread = spread_of(resampling, right, count=20, confidence=0.95, baseline=None)
    assert spread.score == [1.0, 1.0]


@pytest.mark.parametrize("made", [Spans, lambda *arrays: arrays, lambda *arrays: list(arrays)])
def test_a_label_of_as_many_arrays_as_a_batch_has_samples_is_no_list_of_samples(made):
    outputs = batches(40, 2)
    labels = [made(each["y"], each["y"] + 1) for each in outputs]

    def right(some, their):
        hits = []
        for one, (starts, ends) in zip(some, their, strict=True):
            hits += [np.mean((starts == one["y"]) & (ends == one["y"] + 1))]
        return float(np.mean(hits))

    resampling = Resampling(outputs, labels, sizes(outputs))
    assert (resampling.unit, resampling.units) == ("batch", 20)
    assert halves_of(resampling, right) == [1.0, 1.0]
    spread = spread_of(resampling, right, count=20, confidence=0.95, baseline=None)
    assert (spread.score, "failure" in spread.about) == ([1.0, 1.0], False)


def test_a_list_of_one_array_a_sample_is_drawn_by_the_sample():
    outputs = batches(40, 2)
    labels = [[np.zeros(3), np.zeros(2)] for _ in outputs]
    assert Resampling(outputs, labels, sizes(outputs)).unit == "sample"
