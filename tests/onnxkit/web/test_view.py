"""What the example page shows of a model."""

import pytest

from onnxbuild.core.axis import Axis
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port, with_labels
from onnxbuild.onnxkit.web.view import view_of


def signature(inputs, outputs=()):
    axes = (Axis("batch", 1, 8, 2), Axis("side", 8, 64, 24))
    return ModelSignature("demo", "fp32", "model.onnx", tuple(inputs), tuple(outputs), axes)


def port(dtype, shape, name="x"):
    return Port(name, dtype, shape, None)


@pytest.mark.parametrize(
    ("dtype", "shape", "layout", "channels", "draws"),
    [
        ("float32", ("batch", 1, 8, 8), "nchw", 1, True),
        ("uint8", ("batch", "side", "side", 3), "nhwc", 3, False),
        ("float32", ("batch", 1, 256, 256), "nchw", 1, False),
    ],
)
def test_pictures_are_known_by_their_shape(dtype, shape, layout, channels, draws):
    view = view_of(signature([port(dtype, shape)]), (0.0, 1.0))
    image = view["image"]
    assert (view["kind"], image["layout"], image["channels"]) == ("image", layout, channels)
    assert (image["draws"], image["whole"]) == (draws, dtype == "uint8")
    assert (image["scale"], image["range"]) == ("unit", [0.0, 1.0])


@pytest.mark.parametrize(
    "inputs",
    [
        [port("int64", ("batch", 1, 8, 8))],
        [port("float32", ("batch", 4, 8, 8))],
        [port("float32", None)],
        [],
    ],
)
def test_all_else_is_shown_as_numbers(inputs):
    assert view_of(signature(inputs), None)["kind"] == "values"


def test_a_string_is_a_text():
    view = view_of(signature([port("string", ("batch",))]), None)
    assert (view["kind"], view["input"]) == ("text", "x")


@pytest.mark.parametrize(
    ("outputs", "labels", "scores"),
    [
        ([("y", "float32", ("batch", 3))], ("a", "b", "c"), "y"),
        ([("logits", "float32", ("batch", 3))], (), "logits"),
        ([("logits", "float32", ("batch", "side", 3))], (), None),
        ([("z", "float32", ("batch", 4)), ("y", "float32", ("batch", 3))], ("a", "b", "c"), "y"),
    ],
)
def test_scores_are_the_rows_that_labels_fit_or_whose_name_says_so(outputs, labels, scores):
    ports = [port(dtype, shape, name) for name, dtype, shape in outputs]
    view = view_of(with_labels(signature([], ports), labels), None)
    assert view["scores"] == scores
    fits = bool(scores and labels) and {n: s[-1] for n, _, s in outputs}[scores] == len(labels)
    assert view["labels"] == (list(labels) if fits else None)


LABELS = ("cat", "dog", "eel")


@pytest.mark.parametrize(
    ("outputs", "ranked"),
    [
        ([("scores", "float32", 3, ()), ("label", "string", 3, LABELS)], "label"),
        ([("scores", "float32", 3, LABELS), ("class_id", "int64", 3, ())], None),
        ([("scores", "float32", 3, ()), ("class_id", "int64", 2, ())], None),
    ],
)
def test_scores_of_top_k_have_their_classes_in_another_output(outputs, ranked):
    ports = [Port(name, dtype, ("batch", n), None, names) for name, dtype, n, names in outputs]
    assert view_of(signature([], ports), None)["ranked"] == ranked
