"""Blocks: by modules, by structure; equal ones once; every node in one place."""

from onnx import helper

from onnxbuild.onnxkit.pictures.folding import ITEMS_MAX, FoldedBlock, fold
from onnxbuild.onnxkit.pictures.module_scopes import find_scopes
from onnxbuild.onnxkit.pictures.nodes import read_graphs
from tests.onnxkit.pictures.models import model_of, transformer


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
