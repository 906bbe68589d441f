"""Rows of the least and the greatest value, empty texts, other scales."""

import numpy as np

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.reference_files import UNUSUAL, read_reference
from onnxbuild.onnxkit.data.unusual_feeds import extreme_rows, scaled_feeds, write_unusual

INPUTS = (
    DummyInput("ids", "int64", ("batch", 5), low=3, high=9),
    DummyInput("mask", "bool", ("batch", 5)),
    DummyInput("lengths", "int64", ("batch", 5), mask="right"),
    DummyInput("image", "float32", ("batch", 5), low=0, high=1),
    DummyInput("kept", "bool", ("batch", 5), fill=True),
    DummyInput("x", "float32", ("batch", 5)),
)


def test_rows_have_the_least_and_the_greatest_value_that_is_declared():
    first, second = extreme_rows(INPUTS, {"batch": 3}, "s")
    assert first["ids"].tolist() == [[3] * 5, [8] * 5, [8] * 5]
    assert second["ids"].tolist() == [[8] * 5, [3] * 5, [3] * 5]
    assert first["mask"].tolist() == [[False] * 5, [True] * 5, [True] * 5]
    assert first["lengths"].any(axis=1).all()
    assert first["kept"].all()
    assert (first["image"][0] == 0).all()
    assert 0.99 < first["image"][1].min() < 1
    assert len(np.unique(first["x"])) == 15


def test_the_only_row_has_either():
    first, second = extreme_rows(INPUTS, {"batch": 1}, "s")
    assert not first["mask"].any()
    assert second["mask"].all()


def test_one_text_is_empty():
    text = DummyInput("text", "string", ("batch",))
    for feeds in extreme_rows((text,), {"batch": 3}, "s"):
        assert sorted(map(bool, feeds["text"])) == [False, True, True]


def test_floats_without_a_range_are_scaled():
    found = dict(scaled_feeds(INPUTS, {"batch": 2}, "s"))
    assert list(found) == [100.0, 0.01, 0.0]
    np.testing.assert_allclose(found[100.0]["x"], found[0.01]["x"] * 1e4, rtol=1e-5)
    assert not found[0.0]["x"].any()
    assert found[0.0]["image"].any()
    assert not list(scaled_feeds(INPUTS[:5], {"batch": 2}, "s"))


def test_rows_that_a_model_refuses_or_has_nan_for_are_left_out(tmp_path):
    def run(feeds):
        if feeds["mask"][0].all():
            raise StepError("it takes none of these")
        return {"y": feeds["x"]}

    write_unusual(tmp_path, INPUTS, {"batch": 2}, run)
    (point,) = read_reference(tmp_path / UNUSUAL)
    assert (point.name, point.sizes) == ("extreme-rows-0", {"batch": 2})

    write_unusual(
        tmp_path / "none", INPUTS, {"batch": 2}, lambda feeds: {"y": feeds["x"] * np.nan}
    )
    assert not (tmp_path / "none").exists()
