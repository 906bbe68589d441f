"""Points are made smaller where what a model computes there would not fit into memory."""

import numpy as np
from onnx.helper import make_node

from onnxbuild.core.axis import Point
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.data.reference_feeds import FittingPoints
from onnxbuild.onnxkit.model.inspect import held_bytes
from onnxbuild.onnxkit.modules.module_facts import imagined_bytes
from tests.late_imports import Late
from tests.onnxkit.models import model, value, weight

torch = Late("torch")
INPUTS = (DummyInput("x", "float32", ("batch", "length")),)
AXES = (Axis("batch", 1, 64, 2), Axis("length", 8, 4096, 16, multiple_of=8))
EXAMPLE = {"batch": 2, "length": 16}


def squared(sizes):
    """As attention takes them: a matrix of length x length a row."""
    return 4 * sizes["batch"] * sizes["length"] ** 2


def fitting(most):
    return FittingPoints(INPUTS, AXES, squared, most_bytes=most)


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
    points = FittingPoints(INPUTS, AXES, lambda _: None, most_bytes=1)
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

    assert wanted <= imagined_bytes(Wide(), INPUTS, sizes) <= 1.1 * wanted
    assert imagined_bytes(Looks(), INPUTS, sizes) is None
    nodes = [
        make_node("Unsqueeze", ["x", "last"], ["column"]), make_node("Mul", ["column", "w"], ["m"]),
        make_node("ReduceSum", ["m", "last"], ["y"], keepdims=0),
    ]  # fmt: skip
    weights = [weight("last", np.array([-1])), weight("w", np.ones(100, np.float32))]
    ends = [value("x", ["batch", "length"])], [value("y", ["batch", "length"])]
    assert wanted <= held_bytes(model(nodes, *ends, weights), INPUTS, sizes) <= 1.1 * wanted
