from __future__ import annotations

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis
from onnxbuild.onnxkit.benchmark.points import measured_points, takes

AXES = (Axis("batch", 1, 64, 2), Axis("sequence", 1, 512, 16))


def names(wanted, fixed):
    return [point.name for point in measured_points(AXES, wanted, fixed, "demo:benchmark")]


def test_where_no_points_are_named_each_model_is_measured_at_a_size_that_it_takes():
    assert names((), {"any": {}}) == ["batch=2,sequence=16"]
    assert names((), {"any": {}, "one": {"batch": 1}}) == [
        "batch=2,sequence=16",
        "batch=1,sequence=16",
    ]
    assert names((), {"one": {"batch": 1}}) == ["batch=1,sequence=16"]


def test_a_model_that_takes_none_of_the_points_is_named():
    with pytest.raises(StepError) as caught:
        names(({"batch": (2, 4)},), {"any": {}, "one": {"batch": 1}})
    assert "variant 'one' takes batch=1 alone (`session.free_dimensions`)" in caught.value.what
    assert caught.value.fix == "add `{batch: 1}` to `benchmark.points`"


def test_a_model_runs_where_its_sizes_are_those_of_the_point():
    (point,) = measured_points(AXES, (), {"any": {}}, "")
    assert takes({}, point)
    assert takes({"batch": 2}, point)
    assert not takes({"batch": 2, "sequence": 8}, point)
