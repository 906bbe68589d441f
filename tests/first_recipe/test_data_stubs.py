"""Stubs of the user's data run as they are, for all kinds of inputs."""

import numpy as np
import pytest

from onnxbuild.core.axis import Axis
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.first_recipe.data_stubs import data_stubs
from onnxbuild.onnxkit.data.feeds import check_feeds

GROWTH = Growth("past", "sequence")
AXES = (Axis("batch", 1, 8, 2), Axis("past", 0, 9, 3))


class Declared:
    """The parts of a recipe that the stubs are made of."""

    axes = AXES

    def __init__(self, *inputs, outputs=()):
        self.inputs, self.outputs = inputs, outputs


@pytest.mark.parametrize(
    ("recipe", "rows"),
    [
        (
            Declared(
                DummyInput("x", "float32", ("batch", "past + 2")),
                DummyInput("cache", "float32", ("batch", "past")),
                DummyInput("scale", "float32", ()),
                DummyInput("pair", "float16", (2,), low=3.0, high=4.0),
                DummyInput("half", "bfloat16", ("batch",)),
            ),
            32,
        ),
        (Declared(DummyInput("a.b/c", "string", ("batch", 1))), 32),
        (
            Declared(
                DummyInput("ids", "int64", ("batch", 4), low=0, high=50),
                DummyInput("small", "uint8", ("batch",)),
                DummyInput("mask", "int64", ("batch", 4), mask="right"),
                DummyInput("on", "bool", ("batch", 4)),
                DummyInput("three", "int32", ("batch",), fill=3),
                outputs=("scores",),
            ),
            32,
        ),
        (Declared(DummyInput("x", "float64", (3, 5))), 33),
        (
            Declared(
                DummyInput("ids", "int64", ("batch", 4), low=0, high=50),
                DummyInput("mask", "int64", ("batch", "past + 4"), mask="left"),
                DummyInput("positions", "int64", ("batch", 4), arange="past"),
                DummyInput("past", "float32", ("batch", "past"), fed_by="present", growth=GROWTH),
            ),
            32,
        ),
    ],
)
def test_the_stubs_give_what_the_recipe_declares_and_a_score(recipe, rows):
    code = {}
    exec(data_stubs(recipe, "mine.yaml"), code)
    samples = [check_feeds(each, recipe.inputs, "samples") for each in code["samples"]()]
    assert len(samples) == 100
    random = [
        name for name, each in samples[0].items() if each.dtype.kind == "f" and each.size > 1
    ]
    assert all((samples[0][name] != samples[1][name]).any() for name in random)
    feeds, labels = code["labelled"]()
    assert len(labels) == len(next(iter(feeds.values()))) == rows
    outputs = {"scores": np.eye(rows, 3)}
    assert code["accuracy"](outputs, labels) == pytest.approx((rows - 2) / rows)
    assert code["accuracy"]({"scores": labels}, labels) == 1.0
