"""Rows of the least and the greatest value, empty texts, other scales."""

import numpy as np
from onnx.helper import make_node

from onnxbuild.core.axis import Point
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.data.reference_feeds import (
    FittingPoints,
    extreme_rows,
    scaled_feeds,
    write_unusual,
)
from onnxbuild.onnxkit.data.reference_files import UNUSUAL, read_reference
from onnxbuild.onnxkit.model.inspect import held_bytes
from onnxbuild.onnxkit.modules.module_facts import imagined_bytes
from tests.late_imports import Late
from tests.onnxkit.models import model, value, weight

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


torch = Late("torch")
SIZED_INPUTS = (DummyInput("x", "float32", ("batch", "length")),)
AXES = (Axis("batch", 1, 64, 2), Axis("length", 8, 4096, 16, multiple_of=8))
EXAMPLE = {"batch": 2, "length": 16}


def squared(sizes):
    """As attention takes them: a matrix of length x length a row."""
    return 4 * sizes["batch"] * sizes["length"] ** 2


def fitting(most):
    return FittingPoints(SIZED_INPUTS, AXES, squared, most_bytes=most)


def test_a_point_whose_values_fit_stays():
    point = Point("max-length", {**EXAMPLE, "length": 4096})
    assert fitting(squared(point.sizes)).fitted(point) is point


def test_a_point_whose_values_do_not_fit_is_halved_until_they_do_with_a_note():
    most = squared({"batch": 2, "length": 1024})
    points = fitting(most)
    found = points.fitted(Point("max-length", {**EXAMPLE, "length": 4096}))
    assert found == Point("max-length", {**EXAMPLE, "length": 1024})
    (note,) = points.notes
    assert note == (
        "point 'max-length' is tried at length=1024: at length=4096 the model would hold 128.0 MiB of values at once; "
        "to try that all the same, write `reference: {points: [{length: 4096}]}`"
    )


def test_a_point_of_which_only_the_example_is_left_goes_and_one_that_is_written_stays():
    points = fitting(squared(EXAMPLE))
    assert points.fitted(Point("max-length", {**EXAMPLE, "length": 4096})) is None
    written = Point("point-1", {**EXAMPLE, "length": 4096})
    assert points.fitted(written) is written


def test_a_module_whose_values_can_t_be_imagined_is_tried_everywhere():
    points = FittingPoints(SIZED_INPUTS, AXES, lambda _: None, most_bytes=1)
    point = Point("max-batch", {**EXAMPLE, "batch": 64})
    assert points.fitted(point) is point


def test_the_values_of_a_module_and_of_its_graph_are_counted_without_computing_them():
    """100 x what the input takes, at a size that no machine has."""
    sizes = {"batch": 1 << 20, "length": 1 << 10}
    wanted = 4 * sizes["batch"] * sizes["length"] * 100

    class Wide(torch.nn.Module):
        def forward(self, x):
            return (x[:, :, None] * torch.ones(100)).sum(-1)

    class Looks(torch.nn.Module):
        def forward(self, x):
            return x * float(x.sum())

    assert wanted <= imagined_bytes(Wide(), SIZED_INPUTS, sizes) <= 1.1 * wanted
    assert imagined_bytes(Looks(), SIZED_INPUTS, sizes) is None
    nodes = [
        make_node("Unsqueeze", ["x", "last"], ["column"]), make_node("Mul", ["column", "w"], ["m"]),
        make_node("ReduceSum", ["m", "last"], ["y"], keepdims=0),
    ]  # fmt: skip
    weights = [weight("last", np.array([-1])), weight("w", np.ones(100, np.float32))]
    ends = [value("x", ["batch", "length"])], [value("y", ["batch", "length"])]
    assert wanted <= held_bytes(model(nodes, *ends, weights), SIZED_INPUTS, sizes) <= 1.1 * wanted
