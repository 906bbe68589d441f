import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import opset_of
from tests.onnxkit.models import branching, contrib, linear, model, value, weight


def text(made):
    return made.SerializeToString(deterministic=True)


def test_no_path_doc_string_or_metadata_is_left_anywhere():
    made = branching()
    made.doc_string = made.graph.doc_string = "/home/me/model.py"
    made.producer_name, made.producer_version, made.domain = "pytorch", "2.13", "me"
    made.model_version = 7
    inner = made.graph.node[0].attribute[0].g
    for message in (made, made.graph, made.graph.node[0], made.graph.input[0], inner.node[0]):
        entry = message.metadata_props.add()
        entry.key, entry.value = "stack", "/home/me/model.py:3"
    inner.node[0].doc_string = made.graph.initializer[0].doc_string = "/home/me"
    made.graph.node[0].attribute[0].doc_string = "/home/me"

    canonicalize(made)

    assert b"/home/me" not in text(made)
    assert (made.producer_name, made.producer_version) == ("onnxbuild", "")
    assert (made.domain, made.model_version) == ("", 0)
    onnx.checker.check_model(made, full_check=True)


def test_nodes_are_sorted_topologically_and_a_sorted_graph_stays_as_it_is():
    made = linear()
    canonicalize(made)
    sorted_already = [node.name for node in made.graph.node]
    assert sorted_already == ["multiply", "shift", "clip"]

    nodes = list(reversed(list(linear().graph.node)))
    shuffled = linear()
    del shuffled.graph.node[:]
    shuffled.graph.node.extend(nodes)
    canonicalize(shuffled)

    assert text(shuffled) == text(made)


def test_a_subgraph_waits_for_what_it_captures():
    made = branching()
    source = helper.make_node("Neg", ["x"], ["late"])
    then = next(a.g for a in made.graph.node[0].attribute if a.name == "then_branch")
    then.node[0].input[1] = "late"
    made.graph.node.append(source)
    canonicalize(made)
    assert [node.op_type for node in made.graph.node] == ["Neg", "If"]
    onnx.checker.check_model(made, full_check=True)


def test_every_node_has_a_name_of_its_own_in_subgraphs_too():
    made = linear()
    made.graph.node[1].name = made.graph.node[0].name = "same"
    made.graph.node[2].name = ""
    canonicalize(made)
    assert [node.name for node in made.graph.node] == ["same", "same_0", "Relu_0"]

    nested = branching()
    canonicalize(nested)
    branch = nested.graph.node[0]
    names = [branch.name, *(a.g.node[0].name for a in branch.attribute)]
    assert len(set(names)) == 3
    assert all(names)


def test_unused_initializers_go_and_captured_ones_stay():
    made = branching()
    made.graph.initializer.append(weight("nobody", [1.0]))
    canonicalize(made)
    assert [tensor.name for tensor in made.graph.initializer] == ["w"]


def test_initializers_are_not_inputs_and_stand_in_the_order_of_use():
    made = linear()
    made.graph.input.append(value("w", [4, 3]))
    first, second = list(made.graph.initializer)
    del made.graph.initializer[:]
    made.graph.initializer.extend([second, first])
    canonicalize(made)
    assert [each.name for each in made.graph.input] == ["x"]
    assert [each.name for each in made.graph.initializer] == ["w", "b"]


def test_value_info_names_only_what_nodes_make_once_and_in_order():
    made = linear()
    made.graph.value_info.extend(
        [value("sum", ["batch", 3]), value("w", [4, 3]), value("xw", ["batch", 3]),
         value("xw", ["batch", 3]), value("gone", [1]), value("y", ["batch", 3])]
    )  # fmt: skip
    canonicalize(made)
    assert [each.name for each in made.graph.value_info] == ["xw", "sum"]


def test_opset_imports_are_sorted_and_unused_ones_dropped():
    made = contrib()
    made.opset_import[0].domain = "ai.onnx"
    made.opset_import.append(helper.make_opsetid("nobody", 1))
    made.opset_import.sort(key=lambda each: each.version)
    canonicalize(made)
    assert [(o.domain, o.version) for o in made.opset_import] == [("", 18), ("com.microsoft", 1)]


@pytest.mark.parametrize("domains", [("", "ai.onnx"), ("ai.onnx", ""), ("", "")])
def test_of_two_imports_of_a_domain_the_one_that_onnx_runtime_takes_is_left(domains):
    rows = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    made = model(
        [helper.make_node("Softmax", ["x"], ["y"], axis=1)],
        [value("x", ["n", 3, 4])],
        [value("y", ["n", 3, 4])],
    )
    made.ir_version = 7
    del made.opset_import[:]
    made.opset_import.extend(map(helper.make_opsetid, domains, (13, 11)))

    def run():
        session = onnxruntime.InferenceSession(
            made.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        return session.run(None, {"x": rows})[0]

    expected = run()  # opset 11: the sums of both axes are 1
    np.testing.assert_allclose(expected.sum((1, 2)), 1, rtol=1e-5)
    assert opset_of(made) == 11
    canonicalize(made)
    assert [(each.domain, each.version) for each in made.opset_import] == [("", 11)]
    np.testing.assert_array_equal(run(), expected)


def test_a_function_keeps_the_opsets_that_its_nested_graphs_alone_use():
    arms = [
        helper.make_graph(
            [helper.make_node("Gelu", ["h"], [f"out_{name}"], domain="com.microsoft")],
            name, [], [value(f"out_{name}", [2])],
        )
        for name in ("then", "else")
    ]  # fmt: skip
    body = [helper.make_node("If", ["c"], ["out"], then_branch=arms[0], else_branch=arms[1])]
    imports = [("", 18), ("com.microsoft", 1), ("nobody", 1)]
    opsets = [helper.make_opsetid(*each) for each in imports]
    made = model(
        [helper.make_node("Mine", ["x", "c"], ["y"], domain="mine")],
        [value("x", [2]), value("c", [], onnx.TensorProto.BOOL)], [value("y", [2])],
        imports=[*opsets, helper.make_opsetid("mine", 1)],
    )  # fmt: skip
    made.functions.append(helper.make_function("mine", "Mine", ["h", "c"], ["out"], body, opsets))
    canonicalize(made)
    assert [each.domain for each in made.functions[0].opset_import] == ["", "com.microsoft"]
    onnx.checker.check_model(made)
