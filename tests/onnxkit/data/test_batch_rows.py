import numpy as np

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import rows_of

SCALE = DummyInput("scale", "float32", ())
TABLE = DummyInput("table", "float32", (1000, 5))
IMAGES = DummyInput("images", "float32", ("batch", 3))
FIXED = DummyInput("fixed", "float32", (4, 3))


def counted(*inputs, made=(), batch=8):
    def shape(each):
        return tuple(batch if size == "batch" else size for size in each.shape)

    feeds = {each.name: np.zeros(shape(each), np.float32) for each in inputs}
    return rows_of(feeds, inputs, made)


def test_rows_are_those_of_the_first_input_with_a_dynamic_first_axis():
    assert counted(IMAGES, TABLE) == 8
    assert counted(SCALE, IMAGES) == 8
    assert counted(TABLE, FIXED, IMAGES) == 8


def test_rows_that_all_outputs_and_an_input_share_come_first():
    assert counted(TABLE, FIXED, made=(4, 4)) == 4
    assert counted(TABLE, IMAGES, made=(4, 8)) == 8
    assert counted(TABLE, IMAGES, made=(3,)) == 8


def test_rows_without_any_dynamic_axis_are_those_of_the_first_input_that_has_an_axis():
    assert counted(SCALE, FIXED, TABLE) == 4
    assert counted(SCALE) == 1
