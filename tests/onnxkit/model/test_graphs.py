import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.model.graphs import all_nodes, insert_nodes, keep, names_read
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.interface import interface_faults, unused_inputs
from onnxbuild.onnxkit.model.node_patterns import select_nodes
from tests.onnxkit.models import branching, contrib, linear, model, value


def test_a_node_reads_what_its_subgraphs_capture():
    assert names_read(branching().graph.node[0]) >= {"c", "x", "w"}


def test_nodes_of_all_graphs_are_walked():
    assert [node.op_type for node in all_nodes(branching())] == ["If", "Identity", "Add"]


def test_what_is_kept_keeps_its_order_and_is_asked_for_once():
    made, asked = linear(), []

    def wanted(node):
        asked.append(node.name)
        return node.name != "shift"

    held = made.graph.node[2]
    keep(made.graph.node, wanted)
    assert asked == ["multiply", "shift", "clip"]
    assert [node.name for node in made.graph.node] == ["multiply", "clip"]
    assert held.name == "clip"  # not a copy's: what is left stays where it is


def test_nodes_are_inserted_before_the_places_that_others_have_now():
    made = linear()
    new = [onnx.NodeProto(name=name) for name in "abcd"]
    insert_nodes(made.graph, {1: new[:2], 0: new[2:3], 3: new[3:]})
    names = [node.name for node in made.graph.node]
    assert names == ["c", "multiply", "a", "b", "shift", "clip", "d"]


def selected(*patterns, rename=()):
    made = linear()
    for node, name in zip(made.graph.node, rename, strict=False):
        node.name = name
    return select_nodes(patterns, made, option="nodes_to_exclude", where="here")


def test_names_and_patterns_give_nodes_in_the_graphs_order_each_once():
    assert selected() == ()
    assert selected("clip", "multiply") == ("multiply", "clip")
    assert selected("*l*", "clip") == ("multiply", "clip")
    assert selected("s?ift", "[m]*") == ("multiply", "shift")


def test_a_pattern_that_matches_nothing_is_an_error_that_lists_nodes():
    with pytest.raises(StepError) as caught:
        selected("clip", "*/ffn/*")
    assert caught.value.what == (
        "the pattern '*/ffn/*' in `nodes_to_exclude` matches none of the graph's 3 nodes; "
        "it has shift, multiply, clip"
    )
    assert "leave '*/ffn/*' out" in caught.value.fix


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("*/attention/*", "'*/attn/*', which matches 2 nodes"),
        ("node_Matmul_*", "'node_MatMul_*', which matches 1 node"),
    ],
)
def test_a_pattern_with_a_wrong_word_is_reported_with_the_right_one(pattern, meant):
    names = ("/encoder/0/attn/MatMul", "/encoder/1/attn/MatMul", "/head/MatMul")
    made = linear()
    made.graph.node.extend([made.graph.node[0]] * 2)
    for node, name in zip(made.graph.node, (*names, "node_MatMul_7"), strict=False):
        node.name = name
    with pytest.raises(StepError) as caught:
        select_nodes([pattern], made, option="nodes_to_exclude", where="here")
    assert caught.value.fix == f"did you mean {meant}?" if meant else "leave" in caught.value.fix


def test_a_name_that_is_no_nodes_is_an_error_with_the_nearest():
    with pytest.raises(StepError) as caught:
        selected("clipp")
    assert caught.value.fix == "did you mean 'clip'?"


def test_a_summary_says_inputs_operators_and_weights():
    assert summarize(linear()) == {
        "ir_version": 10,
        "opsets": {"ai.onnx": 18},
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}],
        "outputs": [{"name": "y", "dtype": "float32", "shape": ["batch", 3]}],
        "nodes": 3,
        "operators": {"Add": 1, "MatMul": 1, "Relu": 1},
        "initializers": 2,
        "parameters": 15,
        "weights_bytes": 60,
        "weights_bytes_by_dtype": {"float32": 60},
        "functions": 0,
    }


def test_nodes_of_subgraphs_count_and_other_domains_are_named():
    assert summarize(branching())["operators"] == {"Add": 1, "Identity": 1, "If": 1}
    assert summarize(contrib())["operators"] == {"com.microsoft.Gelu": 1}


def test_weights_that_are_sparse_or_in_constant_nodes_count():
    dense = onnx.numpy_helper.from_array(np.ones((4, 3), np.float32))
    values = onnx.numpy_helper.from_array(np.float32([1, 2]), "sparse")
    places = onnx.numpy_helper.from_array(np.int64([0, 7]), "places")
    made = model(
        [
            onnx.helper.make_node("Constant", [], ["w"], value=dense),
            onnx.helper.make_node("MatMul", ["x", "w"], ["a"]),
            onnx.helper.make_node("MatMul", ["a", "sparse"], ["y"]),
        ],
        [value("x", ["batch", 4])],
        [value("y", ["batch", 3])],
    )
    made.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, places, [3, 3]))
    found = summarize(made)
    assert (found["initializers"], found["parameters"], found["weights_bytes"]) == (0, 14, 56)


X = DummyInput("x", "float32", ("batch", 4))


def faults(made, inputs=(X,), outputs=("y",), opset=18):
    return [
        f"{each.where}: {each.what}" for each in interface_faults(made, inputs, outputs, opset)
    ]


def test_a_graph_as_declared_has_no_fault():
    assert faults(linear()) == []
    assert faults(linear(), outputs=(), opset=None) == []


@pytest.mark.parametrize(
    ("inputs", "outputs", "opset", "said"),
    [
        ((X,), ("y",), 17, "opset: the graph has opset 18; expected 17"),
        ((), ("y",), 18, "input 'x': the graph takes an input 'x' that `dummy_inputs` does not"),
        ((DummyInput("x", "int64", ("batch", 4)),), ("y",), 18, "dtype is float32; expected int64"),
        ((DummyInput("x", "float32", ("batch",)),), ("y",), 18, "its rank is 2; expected 1"),
        ((DummyInput("x", "float32", ("rows", 4)),), ("y",), 18,
         "axis 'rows' (dimension 0) is 'batch' in the graph"),
        ((DummyInput("x", "float32", ("batch", 5)),), ("y",), 18, "dimension 1 is 4 in the graph"),
    ],
)  # fmt: skip
def test_each_departure_is_one_fault(inputs, outputs, opset, said):
    found = faults(linear(), inputs, outputs, opset)
    assert len(found) == 1
    assert said in found[0]


def test_a_variant_may_narrow_its_inputs_to_float16():
    made = linear()
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    assert faults(made) == []


def test_inputs_that_nothing_reads_are_listed():
    node = helper.make_node("Relu", ["x"], ["y"])
    made = model([node], [value("x", [1]), value("m", [1])], [value("y", [1])])
    assert unused_inputs(made) == ["m"]


def test_the_fix_of_another_rank_is_the_graphs_own_shape():
    def fix(shape):
        made = linear()
        made.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
        (fault,) = interface_faults(made, (DummyInput("x", "float32", ("batch",)),), ("y",), 18)
        return fault.fix

    assert fix(["batch", 4]) == "write `shape: [batch, 4]` in `dummy_inputs`"
    assert fix([None, 4]) == "write `shape: [axis_0, 4]` in `dummy_inputs`"
    assert fix(None) == "save the model with the shape of this input"
