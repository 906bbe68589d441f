import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.steps.convert_fp16 import KIND, Fp16Options, Fp16Params
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value, weight
from tests.steps.graphs import interface, operators, run_model, save, sentences, tiny_bert


def converted(source, folder, **options):
    params = Fp16Params(Fp16Options(**options))
    outcome, context = run_step(KIND, params, folder, {"model": source})
    return outcome, context.output("model")


def scaled(factor):
    """y = x * factor + 1."""
    nodes = [
        onnx.helper.make_node("Mul", ["x", "factor"], ["scaled"], name="scale"),
        onnx.helper.make_node("Add", ["scaled", "one"], ["y"], name="shift"),
    ]
    weights = [weight("factor", np.float32([factor])), weight("one", np.float32([1]))]
    return model(nodes, [value("x", ["batch"])], [value("y", ["batch"])], weights)


@pytest.mark.slow
def test_a_bert_is_half_the_size_and_close_to_what_it_was(tmp_path):
    source = tiny_bert(tmp_path / "source")
    outcome, target = converted(source, tmp_path / "step")
    assert outcome.metrics["fp32_weights"] == 0
    assert outcome.metrics["size_ratio"] < 0.75
    assert interface(target) == interface(source)
    expected = run_model(source, sentences())["hidden"]
    np.testing.assert_allclose(run_model(target, sentences())["hidden"], expected, atol=1e-2)


def test_inputs_and_outputs_turn_into_fp16_where_the_recipe_says_so(tmp_path):
    source = save(linear(), tmp_path / "source")
    _, target = converted(source, tmp_path / "step", keep_io_types=False)
    (inputs,), (outputs,) = interface(target)
    assert (inputs["dtype"], outputs["dtype"]) == ("float16", "float16")
    assert operators(target)["Cast"] == 0


def test_operators_and_nodes_named_stay_in_fp32_without_casts_between_them(tmp_path):
    source = save(linear(), tmp_path / "source")
    outcome, target = converted(source, tmp_path / "step", op_block_list=("MatMul", "Add"))
    assert outcome.metrics["fp32_weights"] == 2
    assert operators(target)["Cast"] == 2  # into Relu and out of it
    outcome, target = converted(
        source, tmp_path / "nodes", node_block_list=("multiply", "shift", "clip")
    )
    assert operators(target)["Cast"] == 0
    expected = run_model(source, {"x": np.ones((2, 4), np.float32)})["y"]
    np.testing.assert_array_equal(
        run_model(target, {"x": np.ones((2, 4), np.float32)})["y"], expected
    )


def test_every_cast_is_read(tmp_path):
    source = tiny_bert(tmp_path / "source")
    _, target = converted(source, tmp_path / "step", op_block_list=("Softmax", "Add"))
    graph = onnx.load(target / "model.onnx").graph
    read = {name for node in graph.node for name in node.input}
    read |= {each.name for each in graph.output}
    assert [n.name for n in graph.node if n.op_type == "Cast" and n.output[0] not in read] == []


def test_a_name_that_is_not_in_the_graph_is_an_error(tmp_path):
    source = save(linear(), tmp_path / "source")
    with pytest.raises(StepError) as caught:
        converted(source, tmp_path / "step", op_block_list=("MatMull",))
    assert "operator type 'MatMull'" in caught.value.what
    assert caught.value.fix.startswith("did you mean 'MatMul'?")


def overflowing():
    """y = relu(x 300 w) relu(x 300 w) / 1e7 + 1: up to 1e7 in between, about 1 at both ends."""
    w = np.random.default_rng(0).standard_normal((16, 16), dtype=np.float32)
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["wide"], name="widen"),
        onnx.helper.make_node("Relu", ["wide"], ["kept"], name="clip"),
        onnx.helper.make_node("Mul", ["kept", "kept"], ["square"], name="square"),
        # CPUs run Mul in fp32, which hides the overflow; two operators with fp16 kernels do not
        onnx.helper.make_node("Transpose", ["square"], ["turned"], name="turn"),
        onnx.helper.make_node("Flatten", ["turned"], ["flat"], name="flatten"),
        onnx.helper.make_node("Mul", ["flat", "small"], ["narrow"], name="shrink"),
        onnx.helper.make_node("MatMul", ["narrow", "v"], ["mixed"], name="mix"),
        onnx.helper.make_node("Add", ["mixed", "one"], ["y"], name="shift"),
    ]
    weights = [
        weight("w", w * np.float32(300)), weight("small", np.float32([1e-7])),
        weight("v", w / 16), weight("one", np.float32([1])),
    ]  # fmt: skip
    return model(nodes, [value("x", [16, 16])], [value("y", [16, 16])], weights)


def reference(source, folder, feeds):
    """What the reference step writes, with the ONNX model in PyTorch's place."""
    folder.mkdir()
    writer = ReferenceWriter(folder)
    writer.add(ReferencePoint("example", {}, feeds, run_model(source, feeds)))
    writer.finish()
    return folder


def mixed(source, folder, feeds, **options):
    inputs = {"model": source, "reference": reference(source, folder.with_suffix(".npz"), feeds)}
    outcome, context = run_step(KIND, Fp16Params(Fp16Options(**options)), folder, inputs)
    return outcome, context.output("model")


def test_what_overflows_is_kept_in_fp32_and_the_rest_is_not(tmp_path):
    source = save(overflowing(), tmp_path / "source")
    feeds = {"x": np.random.default_rng(1).standard_normal((16, 16), dtype=np.float32)}
    expected = run_model(source, feeds)["y"]
    _, plain = converted(source, tmp_path / "plain")
    assert not np.isfinite(run_model(plain, feeds)["y"]).all()
    outcome, target = mixed(source, tmp_path / "mixed", feeds, keep_fp32="auto")
    np.testing.assert_allclose(run_model(target, feeds)["y"], expected, rtol=1e-2, atol=1e-2)
    assert outcome.notes == (
        "kept in fp32, their values exceed 512: widen, clip, square, turn, flatten, shrink",
    )
    assert outcome.metrics["fp16_weights"] == 2  # of `mix` and `shift`
    assert outcome.metrics["fp32_nodes_kept"] == 6


def test_outputs_that_are_constants_are_cast_like_the_others(tmp_path):
    """As folding makes them of what depends on weights alone, such as the boxes of a detector."""
    nodes = [onnx.helper.make_node("Mul", ["x", "boxes"], ["y"], name="scale")]
    weights = [weight("boxes", np.float32([0.5, 2])), weight("far", np.float32([1e6]))]
    outputs = [value("y", ["batch", 2]), value("boxes", [2]), value("far", [1])]
    source = save(model(nodes, [value("x", ["batch", 2])], outputs, weights), tmp_path / "source")
    _, target = converted(source, tmp_path / "step")
    found = run_model(target, {"x": np.ones((1, 2), np.float32)})
    assert {array.dtype for array in found.values()} == {np.dtype("float32")}
    assert found["boxes"].tolist() == [0.5, 2]
    assert found["y"].tolist() == [[0.5, 2]]
    assert found["far"].tolist() == [1e6]


def test_functions_of_the_model_stay_in_fp32(tmp_path):
    body = [
        onnx.helper.make_node("Constant", [], ["c"], value_float=2.0),
        onnx.helper.make_node("Mul", ["a", "c"], ["b"]),
    ]
    imports = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("own", 1)]
    double = onnx.helper.make_function("own", "Double", ["a"], ["b"], body, imports[:1])
    made = linear(imports=imports)
    made.functions.append(double)
    made.graph.node[-1].output[0] = "r"
    made.graph.node.append(onnx.helper.make_node("Double", ["r"], ["y"], "call", domain="own"))
    source = save(made, tmp_path / "source")
    outcome, target = converted(source, tmp_path / "step")
    assert outcome.notes == ("kept in fp32, they call functions of the model: call",)
    feeds = {"x": np.ones((2, 4), np.float32)}
    expected = run_model(source, feeds)["y"]
    np.testing.assert_allclose(run_model(target, feeds)["y"], expected, rtol=1e-2, atol=1e-2)


def quantized(opset, weights):
    """y = x @ w + b with x quantized, and w, too."""
    nodes = [
        onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"], name="q"),
        onnx.helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"], name="dx"),
        onnx.helper.make_node("DequantizeLinear", ["w", "s", "zw"], ["wd"], name="dw"),
        onnx.helper.make_node("MatMul", ["xd", "wd"], ["xw"], name="multiply"),
        onnx.helper.make_node("Add", ["xw", "b"], ["y"], name="shift"),
    ]
    weights = [
        weight("s", np.float32(0.0625)),
        weight("z", np.uint8(128)),
        weight("w", np.arange(-6, 6, dtype=np.int8).reshape(4, 3)),
        weight("zw", np.int8(0)),
        weight("b", np.float32(weights)),
    ]
    inputs, outputs = [value("x", ["batch", 4])], [value("y", ["batch", 3])]
    return model(nodes, inputs, outputs, weights, opset=opset)


def test_quantizers_stay_in_fp32_where_the_opset_has_them_in_no_other_form(tmp_path):
    feeds = {"x": np.float32([[1, -2, 3, 0.5]])}
    for opset, kept in ((13, True), (18, True), (19, False)):
        source = save(quantized(opset, [1, 2, 3]), tmp_path / f"source-{opset}")
        outcome, target = converted(source, tmp_path / f"{opset}")
        expected = run_model(source, feeds)["y"]
        np.testing.assert_allclose(run_model(target, feeds)["y"], expected, atol=1e-2)
        note = (
            f"kept in fp32, ONNX has no fp16 form of them at opset {opset}: 2 DequantizeLinear and "
            "1 QuantizeLinear; write `opset: 19`, which has one"
        )
        assert outcome.notes == ((note,) if kept else ())


def test_a_model_of_operators_without_a_half_form_alone_is_not_converted(tmp_path):
    node = onnx.helper.make_node("QuantizeLinear", ["x", "s"], ["y"], name="q")
    made = model([node], [value("x", [4])], [value("y", [4], onnx.TensorProto.UINT8)])
    made.graph.initializer.append(weight("s", np.float32(1)))
    source = save(made, tmp_path / "source")
    with pytest.raises(StepError) as caught:
        converted(source, tmp_path / "step")
    assert caught.value.fix == "write `opset: 19`, which has one"


@pytest.mark.parametrize("order", [[1, 0, 2], [1, 2, 0]])
def test_a_transpose_that_would_crash_onnx_runtime_in_fp16_stays_in_fp32(tmp_path, order):
    """The test's process ends with SIGSEGV if it does not."""
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["turned"], name="turn", perm=order),
        onnx.helper.make_node("MatMul", ["turned", "w"], ["y"], name="multiply"),
    ]
    made = model(
        nodes,
        [value("x", [4, "batch", 4])],
        [value("y", ["batch", 4, 3])],
        [weight("w", np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))],
    )
    source = save(made, tmp_path / "source")
    outcome, target = converted(source, tmp_path / "step")
    assert outcome.notes == ("kept in fp32, ONNX Runtime would crash on their fp16 form: turn",)
    assert outcome.metrics["fp16_weights"] == 1
    feeds = {"x": np.linspace(-2, 2, 48, dtype=np.float32).reshape(4, 3, 4)}
    expected = run_model(source, feeds)["y"]
    np.testing.assert_allclose(run_model(target, feeds)["y"], expected, atol=1e-2)
