from collections import namedtuple

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.accuracy.output_parts import OutputParts
from onnxbuild.onnxkit.accuracy.sample_outputs import (
    Sample,
    compare_samples,
    compare_vectors,
    read_vectors,
    sample_vectors,
    write_vectors,
)
from onnxbuild.onnxkit.accuracy.user_metric import Resampling, halves_of, spread_of
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.sessions.open import open_session
from tests.steps.graphs import digits


def images(*sizes):
    generator = np.random.default_rng(0)
    return [{"image": generator.random((n, 1, 8, 8), np.float32)} for n in sizes]


def taken(folder, feeds, project=None):
    session = open_session(digits(folder))
    samples = sample_vectors(session, feeds, project=project, target="mine:project", where="x")
    return [each.vector for each in samples]


def test_a_sample_is_a_row_of_the_batch_whatever_the_batches(tmp_path):
    together = taken(tmp_path, images(5))
    (image,) = images(5)
    alone = taken(tmp_path, [{"image": image["image"][n : n + 1]} for n in range(5)])
    assert [each.shape for each in together] == [(10,)] * 5
    np.testing.assert_allclose(together, alone, rtol=1e-5)


def test_a_projection_says_what_is_looked_at(tmp_path):
    rows = taken(tmp_path, images(3), lambda outputs, feeds: outputs["logits"][:, :2])
    assert [each.shape for each in rows] == [(2,)] * 3


@pytest.mark.parametrize("wrong", [lambda o, f: None, lambda o, f: 1.0, lambda o, f: ["a"]])
def test_a_projection_must_give_an_array_with_a_row_a_sample(tmp_path, wrong):
    with pytest.raises(StepError, match="expected an array of shape"):
        taken(tmp_path, images(2), wrong)


def test_a_value_that_is_not_finite_is_an_error_with_its_item(tmp_path):
    odd = np.zeros((1, 1, 8, 8), np.float32)
    odd[0, 0, 2, 3] = -np.inf
    with pytest.raises(
        StepError, match="item 1 of the data gives a value that is not finite: "
    ) as e:
        taken(tmp_path, [*images(1), {"image": odd}])
    assert "output 'logits' holds 10 NaN among 10 values, the first at [0, 0]" in e.value.what
    assert e.value.what.endswith(
        "; its input 'image' holds 1 -inf among 64 values, at [0, 0, 2, 3]"
    )
    with pytest.raises(StepError, match="the outputs are finite, the projection's is not"):
        taken(tmp_path, images(1), lambda o, f: o["logits"] * np.inf)


def test_vectors_of_any_length_read_back(tmp_path):
    vectors = [np.arange(n, dtype=np.float64) for n in (3, 0, 5)]
    assert write_vectors(tmp_path, vectors) == 3
    for one, other in zip(vectors, read_vectors(tmp_path), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_measures_are_those_of_their_definitions():
    one = [np.array([3.0, 4.0]), np.array([1.0, 0.0])]
    other = [np.array([3.0, 4.0]), np.array([1.0, 1.0])]
    found = compare_vectors(one, other, "x")
    assert found.samples == 2
    assert found.cosine_min == pytest.approx(2**-0.5)
    assert found.cosine_mean == pytest.approx((1 + 2**-0.5) / 2)
    assert found.worst == 1
    assert found.sqnr_db == pytest.approx(10 * np.log10(26 / 1))
    assert compare_vectors(one, one, "x").sqnr_db is None
    zeros = [np.zeros(2)]
    assert compare_vectors(zeros, zeros, "x").cosine_min == 1.0
    assert compare_vectors(zeros, [np.ones(2)], "x").cosine_min == 0.0


def test_parts_of_outputs_are_those_of_all_samples_whatever_a_single_one_has():
    generator = np.random.default_rng(0)
    rows = generator.random((50, 6)) * [2e4, 1, 1, 1, 1, 1]
    exact = [np.concatenate([row, [1.0, 2.0]]) for row in rows]
    found = [Sample.of({"table": row.round(-2), "other": np.array([[1.0, 2.0]])}) for row in rows]
    parts = OutputParts()
    assert compare_samples(exact, found, "x", parts).fidelity().cosine_min > 0.99
    assert [each.name for each in parts.lost()] == ["table[:, 1:6]"]


def test_a_cosine_is_never_above_one():
    generator = np.random.default_rng(0)
    for _ in range(200):
        one = generator.standard_normal(7)
        scaled = one * generator.uniform(0.1, 10)
        assert compare_vectors([one], [scaled], "x").cosine_mean <= 1
        assert compare_vectors([one], [-scaled], "x").cosine_mean >= -1


def test_a_projection_may_fill_one_array_again_and_again(tmp_path):
    held = np.zeros((1, 10))

    def project(outputs, feeds):
        held[:] = outputs["logits"]
        return held

    feeds = images(1, 1, 1)
    found = taken(
        tmp_path, [{"image": each["image"] * n} for n, each in enumerate(feeds)], project
    )
    expected = taken(tmp_path, [{"image": each["image"] * n} for n, each in enumerate(feeds)])
    np.testing.assert_array_equal(found, expected)


def test_other_data_than_the_baseline_s_is_an_error():
    one = [np.ones(2), np.ones(2)]
    for other in ([np.ones(2)], [np.ones(2)] * 3, [np.ones(2), np.ones(3)]):
        with pytest.raises(StepError, match="the data must be the same each time"):
            compare_vectors(one, other, "x")
    with pytest.raises(StepError, match="yields nothing to compare on"):
        compare_vectors([], [], "x")
    with pytest.raises(StepError, match="are empty for all 2 samples") as caught:
        compare_vectors([np.zeros(0)] * 2, [np.zeros(0)] * 2, "x")
    assert "gives outputs some elements" in caught.value.fix
    assert compare_vectors([np.zeros(0), np.ones(1)], [np.zeros(0), np.ones(1)], "x").samples == 2


def test_outputs_whose_sizes_depend_on_values_need_a_projection():
    with pytest.raises(StepError, match="or its outputs have other sizes") as caught:
        compare_vectors([np.ones(4)], [np.ones(8)], "x")
    assert "`fidelity: {project: FILE.py:CALLABLE}`" in caught.value.fix


def with_ids(folder):
    """The digits' logits, and their classes + 20,000."""
    made = load_model(digits(folder))
    made.graph.node.append(helper.make_node("ArgMax", ["logits"], ["top"], axis=1, keepdims=0))
    made.graph.node.append(helper.make_node("Add", ["top", "shift"], ["ids"]))
    made.graph.initializer.append(numpy_helper.from_array(np.int64(20_000), "shift"))
    made.graph.output.append(helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch"]))
    return made


def test_ids_are_left_out_of_what_a_cosine_is_taken_of(tmp_path):
    logits = taken(tmp_path / "logits", images(3))
    save_model(with_ids(tmp_path / "digits"), tmp_path / "both")
    session = open_session(tmp_path / "both")
    samples = sample_vectors(session, images(3), project=None, target="", where="x")
    both = [each.vector for each in samples]
    np.testing.assert_allclose(both, logits, rtol=1e-5)


def test_ids_alone_have_no_cosine(tmp_path):
    made = with_ids(tmp_path / "digits")
    del made.graph.output[0]
    save_model(made, tmp_path / "ids")
    session = open_session(tmp_path / "ids")
    with pytest.raises(StepError, match=r"no output is of floats \(ids\)") as caught:
        list(sample_vectors(session, images(3), project=None, target="", where="x"))
    assert caught.value.fix.startswith("name a `fidelity.project` that makes vectors of them")


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
