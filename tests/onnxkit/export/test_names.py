import onnx
from onnx import helper

from onnxbuild.onnxkit.export.names import settle_names
from tests.onnxkit.models import model, value, weight


def exported():
    """What an exporter makes of y = l(x) with an inner value that is called like the output."""
    return model(
        [
            helper.make_node(
                "MatMul", ["in0", "module.l.weight"], ["embedding"], name="/module/l/m"
            ),
            helper.make_node("Relu", ["embedding"], ["out0"], name="other"),
        ],
        [value("in0", ["b", 2])],
        [value("out0", ["b", 2])],
        [weight("module.l.weight", [[1.0, 0.0], [0.0, 1.0]])],
        value_info=[value("embedding", ["b", 2])],
    )


def test_inputs_and_outputs_get_their_names_and_the_wrapper_disappears():
    made = exported()
    settle_names(made, {"in0": "x", "out0": "y"}, "module")
    assert [v.name for v in (*made.graph.input, *made.graph.output)] == ["x", "y"]
    assert made.graph.initializer[0].name == "l.weight"
    assert [node.name for node in made.graph.node] == ["/l/m", "other"]
    onnx.checker.check_model(made)


def test_an_inner_value_gives_way_to_an_output_of_its_name():
    made = exported()
    settle_names(made, {"in0": "x", "out0": "embedding"}, "module")
    first, second = made.graph.node
    assert (list(first.output), list(second.input)) == (["embedding_1"], ["embedding_1"])
    assert list(second.output) == ["embedding"]
    assert made.graph.value_info[0].name == "embedding_1"
    onnx.checker.check_model(made)


def test_a_weight_keeps_its_prefix_where_the_short_name_is_taken():
    made = exported()
    settle_names(made, {"in0": "l.weight", "out0": "y"}, "module")
    assert made.graph.initializer[0].name == "l.weight_1"
    onnx.checker.check_model(made)
