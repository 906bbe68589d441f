import pytest

from onnxbuild.core.axis import Axis
from onnxbuild.onnxkit.triton.repository import batch_axis

AXES = {"batch": Axis("batch", 1, 8, 2), "batches": Axis("batches", 1, 8, 2)}


def test_the_first_axis_of_all_shapes_is_batched_along():
    assert batch_axis([("batch", 4), ("batch", "batches")], AXES) == AXES["batch"]


@pytest.mark.parametrize("size", ["batch", "2*batch"])
def test_an_axis_that_is_in_another_place_too_is_not(size):
    assert batch_axis([("batch", 4), ("batch", size)], AXES) is None
