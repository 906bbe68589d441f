"""Outputs of several things, statically quantized: none of them is rounded to a constant."""

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.onnxkit.accuracy.output_parts import OutputParts
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.steps import calibrate, preprocess, quantize_static
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight
from tests.steps.quantizers import Case

R = np.random.default_rng(0)
FEEDS = [{"x": R.random((4, 12), np.float32)} for _ in range(10)]


def constant(name, array, dtype=np.float32):
    return weight(name, np.asarray(array, dtype))


def node(op_type, inputs, output, **attributes):
    return helper.make_node(op_type, inputs, [output], name=f"/{output}", **attributes)


def heads(nodes, constants, shape, *, second=()):
    """Two products of x, `large` with values in the thousands and `small` with a sigmoid's, and what joins them."""
    weights = [constant("wl", R.normal(0, 2e3, (12, 4))), constant("ws", R.normal(0, 1, (12, 4)))]
    made = [
        node("MatMul", ["x", "wl"], "large"),
        node("MatMul", ["x", "ws"], "logits"),
        node("Sigmoid", ["logits"], "small"),
    ]
    outputs = [value("y", shape), *second]
    return model([*made, *nodes], [value("x", ["batch", 12])], outputs, [*weights, *constants])


JOINED = {
    "Concat": heads([node("Concat", ["large", "small"], "y", axis=1)], [], ["batch", 8]),
    "Concat and what follows": heads(
        [
            node("Concat", ["large", "small"], "joined", axis=1),
            node("Reshape", ["joined", "shape"], "shaped"),
            node("Transpose", ["shaped"], "y", perm=[0, 2, 1]),
        ],
        [constant("shape", [-1, 2, 4], np.int64)],
        ["batch", 4, 2],
    ),
    "Stack": heads(
        [
            node("Unsqueeze", ["large", "axis"], "one"),
            node("Unsqueeze", ["small", "axis"], "other"),
            node("Concat", ["one", "other"], "y", axis=1),
        ],
        [constant("axis", [1], np.int64)],
        ["batch", 2, 4],
    ),
    "Add of Pads": heads(
        [
            node("Pad", ["large", "after"], "one"),
            node("Pad", ["small", "before"], "other"),
            node("Add", ["one", "other"], "y"),
        ],
        [constant("after", [0, 0, 0, 4], np.int64), constant("before", [0, 4, 0, 0], np.int64)],
        ["batch", 8],
    ),
    "Where": heads(
        [node("Where", ["first", "large", "small"], "y")],
        [constant("first", [[True, False, False, False]], bool)],
        ["batch", 4],
    ),
    "Mul": heads(
        [node("Mul", ["small", "units"], "y")], [constant("units", [2e4, 1, 1, 1])], ["batch", 4]
    ),
    "Softmax with a background": heads(
        [node("Add", ["logits", "background"], "sum"), node("Softmax", ["sum"], "y", axis=1)],
        [constant("background", [9, 0, 0, 0])],
        ["batch", 4],
    ),
    "one product": model(
        [node("MatMul", ["x", "w"], "product"), node("Add", ["product", "b"], "y")],
        [value("x", ["batch", 12])],
        [value("y", ["batch", 4])],
        [constant("w", R.normal(0, [[3e3, 0.1, 0.1, 0.1]], (12, 4))), constant("b", np.ones(4))],
    ),
}


def quantized(folder, made, **options):
    """The outcome, the model, and the parts of y that are lost in it."""
    case = Case(folder, made, FEEDS)
    _, prepared = run_step(
        preprocess.KIND,
        preprocess.PreprocessParams(),
        folder / "preprocess",
        {"model": case.source},
    )
    entry, inputs, axes = case.data()
    params = calibrate.CalibrateParams(entry, inputs, calibrate.CalibrationOptions(), axes)
    _, ranges = run_step(
        calibrate.KIND, params, folder / "calibrate", {"model": prepared.output("model")}
    )
    given = {"reduce_range": False, "activation_type": "uint8", **options}
    params = quantize_static.StaticParams(quantize_static.StaticOptions(**given))
    inputs = {"model": prepared.output("model"), "calibration": ranges.output("calibration")}
    outcome, context = run_step(quantize_static.KIND, params, folder / "static", inputs)
    target, parts = context.output("model"), OutputParts()
    for feeds in FEEDS:
        exact, found = (open_session(each).run(["y"], feeds)[0] for each in (case.source, target))
        parts.add("y", exact, found, real=True)
    return outcome, onnx.load(target / "model.onnx"), [each.name for each in parts.lost()]


@pytest.mark.parametrize("joined", JOINED)
@pytest.mark.parametrize("activations", ["uint8", "int8", "uint16"])
def test_each_thing_that_an_output_holds_keeps_its_values(
    joined, activations, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    outcome, made, lost = quantized(tmp_path, JOINED[joined], activation_type=activations)
    assert lost == []
    assert {"MatMul", "Gemm"} & outcome.metrics["quantized"].keys()
    if activations != "uint16":
        (note,) = (each for each in outcome.notes if "stays in fp32, with what follows" in each)
        assert note.startswith("what ")
    assert {each.name for each in made.graph.output} == {"y"}


def test_values_of_like_ranges_are_quantized_up_to_the_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joined = heads([node("Concat", ["logits", "small"], "y", axis=1)], [], ["batch", 8])
    outcome, made, lost = quantized(tmp_path, joined)
    assert (lost, outcome.notes) == ([], ())
    assert made.graph.node[-1].op_type == "DequantizeLinear"


def test_a_product_behind_keeps_its_input_in_8_bits(tmp_path, monkeypatch):
    """The joined value is an output, too; what multiplies it takes it quantized."""
    monkeypatch.chdir(tmp_path)
    joined = heads(
        [node("Concat", ["large", "small"], "y", axis=1), node("MatMul", ["y", "w"], "z")],
        [constant("w", R.normal(0, 1, (8, 3)))],
        ["batch", 8],
        second=[value("z", ["batch", 3])],
    )
    outcome, made, lost = quantized(tmp_path, joined)
    assert lost == []
    assert outcome.metrics["quantized"]["MatMul"] == 3
    makers = {name: each.op_type for each in made.graph.node for name in each.output}
    assert makers["y"] == "Concat"
    (behind,) = (each for each in made.graph.node if each.name == "/z")
    assert makers[behind.input[0]] == "DequantizeLinear"


def test_only_products_are_quantized_if_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome, _, lost = quantized(tmp_path, JOINED["Concat"], only_products=True)
    assert lost == []
    assert list(outcome.metrics["quantized"]) == ["MatMul"]
