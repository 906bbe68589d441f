import onnx
from onnx import TensorProto, helper

from onnxbuild.onnxkit.model.graphs import names_read
from onnxbuild.onnxkit.model.scopes import hide_captures, show_captures
from tests.onnxkit.models import model, value, weight


def capturing():
    """A branch reads `h`, `x` and `w`; only `h` is made by a node."""
    arms = [
        helper.make_graph(
            [helper.make_node("Add", [read, "w"], [f"out_{read}"])], read, [],
            [value(f"out_{read}", [2])],
        )
        for read in ("h", "x")
    ]  # fmt: skip
    nodes = [
        helper.make_node("Neg", ["x"], ["h"], "neg"),
        helper.make_node("If", ["c"], ["y"], "if", then_branch=arms[0], else_branch=arms[1]),
    ]
    inputs = [value("x", [2]), value("c", [], TensorProto.BOOL)]
    return model(nodes, inputs, [value("y", [2])], [weight("w", [1.0, 2.0])])


def test_what_a_branch_reads_of_a_node_is_read_by_an_identity():
    made = capturing()
    shown = show_captures(made)
    assert shown == {"h/captured": "h"}
    assert [node.op_type for node in made.graph.node] == ["Neg", "Identity", "If"]
    assert names_read(made.graph.node[2]) == {"c", "h/captured", "x", "w"}
    onnx.checker.check_model(made)


def test_hiding_undoes_showing():
    made = capturing()
    before = made.SerializeToString(deterministic=True)
    hide_captures(made, show_captures(made))
    assert made.SerializeToString(deterministic=True) == before


def test_a_branch_reads_what_took_the_values_place_where_it_is_gone():
    made = capturing()
    shown = show_captures(made)
    made.graph.node[0].output[0] = made.graph.node[1].input[0] = "h_DequantizeLinear_Output"
    hide_captures(made, shown)
    assert names_read(made.graph.node[1]) == {"c", "h_DequantizeLinear_Output", "x", "w"}
