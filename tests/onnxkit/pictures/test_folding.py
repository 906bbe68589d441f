"""Blocks: by modules, by structure; equal ones once; every node in one place."""

from __future__ import annotations

import itertools

from onnx import helper

from onnxbuild.onnxkit.pictures.folding import ITEMS_MAX, FoldedBlock, fold
from onnxbuild.onnxkit.pictures.module_scopes import SHAPES, find_scopes, tokens
from onnxbuild.onnxkit.pictures.read_graphs import read_graphs
from onnxbuild.onnxkit.pictures.repeats import cycles, find_repeat, find_runs
from tests.onnxkit.pictures.models import model_of, transformer, weight


def folded(model) -> FoldedBlock:
    return fold(read_graphs(model)[0], "model")


def blocks(block: FoldedBlock) -> list[FoldedBlock]:
    inner = [each for each in block.items if isinstance(each, FoldedBlock)]
    return [*inner, *(each for one in inner for each in blocks(one))]


def test_twelve_equal_layers_are_one_block_by_their_names():
    root = folded(transformer(12))
    (layers,) = [each for each in root.items if isinstance(each, FoldedBlock) and each.count > 1]
    assert (layers.name, layers.count, len(layers.nodes)) == ("encoder.layer.0 … 11", 12, 18)
    assert len(layers.everything) == 12 * 18
    names = {each.name for each in blocks(layers)}
    assert names == {"attention", "query", "key", "value", "out", "up", "down"}


def test_equal_layers_without_names_are_one_block_by_structure():
    root = folded(transformer(12, named=False))
    counts = [each.count for each in root.items if isinstance(each, FoldedBlock)]
    assert 12 in counts
    assert max(len(each.items) for each in [root, *blocks(root)]) <= ITEMS_MAX


def test_a_layer_that_differs_is_not_folded():
    model = transformer(4)
    (relu,) = [each for each in model.graph.node if each.output[0] == "act2"]
    relu.op_type = "Tanh"
    root = folded(model)
    shown = [(each.name, each.count) for each in root.items if isinstance(each, FoldedBlock)]
    assert ("layer.0 … 1", 2) in shown
    assert ("layer.2", 1) in shown


def test_every_node_is_in_one_place():
    for model in (transformer(5), transformer(5, named=False)):
        root = folded(model)
        assert sorted(node.number for node in root.everything) == list(
            range(len(model.graph.node))
        )


def test_exporters_words_come_before_names():
    node = helper.make_node("Relu", ["x"], ["y"], name="/wrong/place/Relu")
    entry = node.metadata_props.add()
    entry.key, entry.value = "pkg.torch.onnx.name_scopes", "['', 'net', 'net.layer.0', 'relu']"
    (graph,) = read_graphs(model_of([node]))
    assert find_scopes(graph.nodes)[0] == {0: ("net", "layer.0")}
    del node.metadata_props[:]
    entry = node.metadata_props.add()
    entry.key, entry.value = "namespace", ": Net/net: Net/net.layer.1: Layer/relu: aten.relu"
    (graph,) = read_graphs(model_of([node]))
    assert find_scopes(graph.nodes)[0] == {0: ("net", "layer.1")}


def test_a_weight_that_many_read_names_none_of_them():
    model = transformer(3)
    shared = weight("model.encoder.layer.0.norm.weight", 32)
    model.graph.initializer.append(shared)
    for node in model.graph.node:
        if node.op_type == "Softmax":
            node.op_type = "Mul"
            node.input.append(shared.name)
    root = folded(model)
    assert 3 in [each.count for each in root.items if isinstance(each, FoldedBlock)]


def test_what_several_layers_need_of_the_inputs_alone_is_a_block():
    model = transformer(3)
    for n, node in enumerate(model.graph.node):
        if node.op_type == "Softmax":
            model.graph.node[n].CopyFrom(
                helper.make_node("Where", ["mask", node.input[0], "x"], [node.output[0]])
            )
    model.graph.node.insert(0, helper.make_node("Greater", ["x", "zero"], ["mask"]))
    model.graph.node.insert(0, helper.make_node("Identity", ["x"], ["zero"]))
    graph = read_graphs(model)[0]
    scopes, _ = find_scopes(graph.nodes)
    assert scopes[0] == scopes[1] == SHAPES


def test_a_flat_graph_of_many_nodes_is_put_together():
    names = ["x", *(f"v{n}" for n in range(2_000)), "y"]
    kinds = ("Relu", "Tanh", "Abs", "Neg", "Exp")
    nodes = [
        helper.make_node(kinds[(n * n) % 5], [a], [b])
        for n, (a, b) in enumerate(itertools.pairwise(names))
    ]
    root = folded(model_of(nodes))
    assert len(root.items) <= ITEMS_MAX
    assert all(len(each.items) <= ITEMS_MAX for each in blocks(root))
    assert len(root.everything) == 2_001


def test_no_picture_has_too_many_boxes_where_one_stretch_carries_many_values_on():
    """A piece of 300 nodes that can't be cut, after some that can."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    nodes += [
        helper.make_node(("Exp", "Neg", "Abs")[n % 7 % 3], ["b"], [f"v{n}"]) for n in range(300)
    ]
    nodes.append(helper.make_node("Sum", [f"v{n}" for n in range(300)], ["y"]))
    root = folded(model_of(nodes, [weight("w", 32, 32)]))
    assert all(len(each.items) <= ITEMS_MAX for each in [root, *blocks(root)])
    assert len(root.everything) == 303


def test_numbers_stay_with_the_name_before_them():
    assert tokens(("encoder", "layer", "3", "attention")) == ("encoder", "layer.3", "attention")
    assert tokens(("0", "1", "x")) == ("0", "1", "x")


def test_runs_repeats_and_circles():
    assert find_runs("aabbbc") == [(0, 2), (2, 5)]
    assert find_repeat([*"xabcabcabcy"]) == (1, 3, 3)
    assert find_repeat([*"aaaa"]) == (0, 1, 4)
    assert find_repeat([*"abcd"]) is None
    assert cycles([{1}, {2}, {0}, {0}, set()]) == [[0, 1, 2]]
