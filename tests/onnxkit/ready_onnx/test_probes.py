"""Sizes that a model takes, found by running it."""

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.ready_onnx.probes import draft_of_sizes, load_named
from tests.onnxkit import models
from tests.onnxkit.models import model, value, weight


def test_rows_up_to_a_limit_are_not_the_batch(tmp_path):
    nodes = [
        helper.make_node("Slice", ["x", "zero", "five"], ["top"]),
        helper.make_node("Relu", ["x"], ["all"]),
    ]
    outputs = [value("top", ["K", 2]), value("all", ["?", 2])]
    weights = [weight("zero", [0]), weight("five", [5])]
    save_model(model(nodes, [value("x", ["batch", 2])], outputs, weights), tmp_path)
    inputs = [DummyInput("x", "float32", ("batch", 2))]

    found = load_named(tmp_path, inputs, [Axis("batch", 1, 8, 2)], "r:import")

    assert [dimensions(each) for each in found.graph.output] == [["top_dim_0", 2], ["batch", 2]]


@pytest.mark.parametrize(
    ("fixed", "fix"),
    [([1, 6], "batch: {min: 1, max: 1, example: 1}"), ([2, 512], "width: {min: 512")],
)
def test_a_size_outside_of_the_ranges_at_which_it_runs_is_the_fix(fixed, fix, tmp_path):
    """The first recipe's ranges are a guess: many files take one row, or no input shorter than a window."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    values = [value("x", ["batch", "width"])], [value("y", fixed)], [weight("shape", fixed)]
    save_model(model(nodes, *values), tmp_path)
    inputs = [DummyInput("x", "float32", ("batch", "width"))]
    axes = [Axis("batch", 1, 8, 2), Axis("width", 1, 64, 6)]
    with pytest.raises(StepError) as caught:
        load_named(tmp_path, inputs, axes, "r:import")
    assert fix in caught.value.fix


WIDE = {"min": 1, "max": 64, "example": 16}
BATCH = {"min": 1, "max": 8, "example": 2}


def said(width=WIDE):
    return {
        "dummy_inputs": {"x": {"dtype": "float32", "shape": ["batch", "width"]}},
        "outputs": ["y"],
        "dynamic_axes": {"batch": BATCH, "width": width},
    }


@pytest.fixture
def reshaped(tmp_path):
    """A model that reshapes x (batch, width)."""

    def make(*shape):
        weights = [models.weight("s", np.array(shape, np.int64))]
        made = models.model(
            [helper.make_node("Reshape", ["x", "s"], ["y"])],
            [models.value("x", ["batch", "width"])],
            [models.value("y", [None] * len(shape))],
            weights,
        )
        onnx.save(made, tmp_path / "m.onnx")
        (tmp_path / "scratch").mkdir()
        return tmp_path / "m.onnx", {}

    return make


def test_multiples_are_written(reshaped, tmp_path):
    draft = draft_of_sizes(*reshaped(0, -1, 4), said(), tmp_path / "scratch")
    stepped = {"min": 4, "max": 64, "example": 16, "multiple_of": 4}
    assert draft.recipe == {"dynamic_axes": {"width": stepped}}
    assert draft.comments == {
        "dynamic_axes.width": "tried: axis 'width' takes multiples of 4 alone"
    }
    assert not draft.holes


def test_a_batch_that_is_baked_in_is_a_number(tmp_path):
    made = models.model(
        [helper.make_node("MatMul", ["w", "x"], ["y"])],  # (2, 2) times x
        [models.value("x", ["batch", "width"])],
        [models.value("y", [2, "width"])],
        [models.weight("w", np.eye(2, dtype=np.float32))],
    )
    onnx.save(made, tmp_path / "m.onnx")
    draft = draft_of_sizes(tmp_path / "m.onnx", {}, said(), tmp_path / "scratch")
    assert draft.recipe == {"dummy_inputs": {"x": {"shape": [2, "width"]}}}
    assert draft.comments == {"dummy_inputs.x": "tried: axis 'batch' takes its example alone"}


def test_a_sum_with_an_axis_that_is_baked_in_has_its_size(tmp_path):
    made = models.model(
        [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["m"], ["z"])],
        [models.value("x", ["batch", "width"]), models.value("m", ["batch", "width + 1"])],
        [models.value("y", ["batch", 2]), models.value("z", ["batch", "width + 1"])],
        [models.weight("w", np.ones((16, 2), np.float32))],
    )
    onnx.save(made, tmp_path / "m.onnx")
    recipe = said()
    recipe["dummy_inputs"]["m"] = {"dtype": "float32", "shape": ["batch", "width + 1"]}
    recipe["outputs"] = ["y", "z"]
    draft = draft_of_sizes(tmp_path / "m.onnx", {}, recipe, tmp_path / "scratch")
    assert draft.recipe == {
        "dummy_inputs": {"x": {"shape": ["batch", 16]}, "m": {"shape": ["batch", 17]}}
    }
    assert set(draft.comments) == {"dummy_inputs.x", "dummy_inputs.m"}


def test_a_model_that_onnx_runtime_refuses_is_left_to_the_build(tmp_path):
    made = models.model(
        [helper.make_node("Nonesuch", ["x"], ["y"])],
        [models.value("x", ["batch", "width"])],
        [models.value("y", ["batch", "width"])],
    )
    onnx.save(made, tmp_path / "m.onnx")
    assert draft_of_sizes(tmp_path / "m.onnx", {}, said(), tmp_path / "scratch") is None
