import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
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


def test_several_fp32_nodes_can_read_one_fp16_value(tmp_path):
    source = tiny_bert(tmp_path / "source")  # query, key and value read one LayerNorm
    _, target = converted(source, tmp_path / "step", op_block_list=("MatMul",))
    assert run_model(target, sentences())["hidden"].shape == (3, 7, 32)


def test_every_cast_is_read(tmp_path):
    source = tiny_bert(tmp_path / "source")
    _, target = converted(source, tmp_path / "step", op_block_list=("Softmax", "Add"))
    graph = onnx.load(target / "model.onnx").graph
    read = {name for node in graph.node for name in node.input}
    read |= {each.name for each in graph.output}
    assert [n.name for n in graph.node if n.op_type == "Cast" and n.output[0] not in read] == []


def test_constants_beyond_fp16_keep_their_readers_in_fp32(tmp_path):
    source = save(scaled(1e5), tmp_path / "source")
    outcome, target = converted(source, tmp_path / "step")
    assert outcome.notes == ("kept in fp32, their constants exceed 65504: scale",)
    found = run_model(target, {"x": np.float32([0.25])})["y"]
    np.testing.assert_allclose(found, [25001], rtol=1e-3)


def test_a_masks_minus_infinity_is_clamped_instead(tmp_path):
    nodes = [onnx.helper.make_node("Where", ["keep", "x", "never"], ["scores"], name="mask")]
    nodes += [onnx.helper.make_node("Softmax", ["scores"], ["y"], name="softmax")]
    made = model(
        nodes,
        [value("x", ["batch", 2]), value("keep", ["batch", 2], onnx.TensorProto.BOOL)],
        [value("y", ["batch", 2])],
        [weight("never", np.float32([np.finfo(np.float32).min]))],
    )
    source = save(made, tmp_path / "source")
    outcome, target = converted(source, tmp_path / "step")
    assert outcome.notes == ()
    feeds = {"x": np.float32([[1, 1]]), "keep": np.array([[False, False]])}
    np.testing.assert_array_equal(run_model(target, feeds)["y"], [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"op_block_list": ("MatMull",)}, "operator type 'MatMull'", "did you mean 'MatMul'?"),
        ({"node_block_list": ("shif",)}, "node 'shif'", "did you mean 'shift'?"),
        ({"op_block_list": ("Zebra",)}, "it has Add, MatMul, Relu", "leave 'Zebra' out"),
    ],
)
def test_a_name_that_is_not_in_the_graph_is_an_error(tmp_path, options, what, fix):
    source = save(linear(), tmp_path / "source")
    with pytest.raises(StepError) as caught:
        converted(source, tmp_path / "step", **options)
    assert what in caught.value.what
    assert caught.value.fix.startswith(fix)


def test_a_model_without_fp32_weights_is_an_error(tmp_path):
    made = model(
        [onnx.helper.make_node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y", [2])]
    )
    with pytest.raises(StepError, match="no fp32 weights"):
        converted(save(made, tmp_path / "source"), tmp_path / "step")
