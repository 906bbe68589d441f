import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.onnxkit.model.graphs import names_defined, names_read, subgraphs
from onnxbuild.onnxkit.model.scopes import (
    hide_captures,
    name_maker,
    rename_reads,
    scopes,
    separate_names,
    show_captures,
)
from tests.onnxkit.models import branching, model, value, weight


def siblings():
    """Two branches that each define `w` and `h`; the first holds a third that reads its `h`."""
    inner = helper.make_graph(
        [helper.make_node("Add", ["h", "w"], ["deep"])], "inner", [], [value("deep", [2])]
    )
    nested = helper.make_node("If", ["c"], ["t"], then_branch=inner, else_branch=inner)
    then = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["h"]), nested], "then", [], [value("t", [2])],
        [weight("w", [1.0, 2.0])],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Sub", ["x", "w"], ["h"])], "else", [], [value("h", [2])],
        [weight("w", [3.0, 4.0])],
    )  # fmt: skip
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    inputs = [value("x", [2]), value("c", [], 9)]
    return model([node], inputs, [value("y", [2])], [weight("w", [5.0, 6.0])])


def test_a_name_stands_for_the_value_of_the_innermost_graph_that_defines_it():
    found = {each.graph.name: each for each in scopes(siblings())}
    tensors = {name: each.initializer("w") for name, each in found.items()}
    first = {name: float(numpy_helper.to_array(each)[0]) for name, each in tensors.items()}
    assert first == {"any": 5.0, "then": 1.0, "inner": 1.0, "else": 3.0}
    assert found["inner"].home("h").graph.name == "then"
    assert found["inner"].home("x").outer is None
    assert found["inner"].home("nothing") is None


def test_a_node_reads_what_its_graphs_capture_and_not_what_they_define():
    assert names_read(siblings().graph.node[0]) == {"c", "x"}
    assert names_read(branching().graph.node[0]) == {"c", "x", "w"}


def test_each_name_stands_for_one_value_once_names_are_separate():
    made = siblings()
    separate_names(made)
    names = [name for each in scopes(made) for name in sorted(names_defined(each.graph))]
    assert len(names) == len(set(names))
    assert {"x", "c", "y", "w"} <= names_defined(made.graph)
    (then,) = (each for each in subgraphs(made.graph.node[0]) if each.name == "then")
    (inner,) = {each.node[0].input[0] for each in subgraphs(then.node[1])}
    assert inner == then.node[0].output[0]  # the deepest graph follows its own `h`
    before = made.SerializeToString(deterministic=True)
    separate_names(made)
    assert made.SerializeToString(deterministic=True) == before


def test_a_model_that_is_separate_already_keeps_its_names():
    made = branching()
    before = made.SerializeToString(deterministic=True)
    separate_names(made)
    assert made.SerializeToString(deterministic=True) == before


def test_reads_are_renamed_but_for_a_graphs_own_value_of_that_name():
    made = siblings()
    rename_reads(made.graph.node[0], {"x": "other", "w": "else", "c": "flag"})
    assert names_read(made.graph.node[0]) == {"flag", "other"}


def test_made_names_are_unlike_all_that_are_taken():
    taken = {"a", "a_0"}
    make = name_maker(taken)
    assert [make("a"), make("a"), make("b"), make("b")] == ["a_1", "a_2", "b", "b_0"]
    assert taken == {"a", "a_0", "a_1", "a_2", "b", "b_0"}


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
