import onnx

from onnxbuild.onnxkit.model.graphs import all_nodes, insert_nodes, keep, names_read
from tests.onnxkit.models import branching, linear


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
