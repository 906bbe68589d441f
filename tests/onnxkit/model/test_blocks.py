import numpy as np
import onnx
import pytest

from onnxbuild.onnxkit.model.blocks import Block, find_blocks, module_path
from tests.onnxkit.models import model, value, weight

SQUARE = np.eye(4, dtype=np.float32)
ROW = np.zeros(4, np.float32)


def node(kind, inputs, output, name):
    return onnx.helper.make_node(kind, inputs, [output], name)


def graph(nodes, weights):
    made = model(nodes, [value("x", ["n", 4])], [value("y", ["n", 4])], weights)
    onnx.checker.check_model(made)
    return made


def layers(count, weight_of, bias_of, name_of):
    """Two MatMuls a layer, each with its bias."""
    nodes, weights, source = [], [], "x"
    for number in range(2 * count):
        layer, part = divmod(number, 2)
        target = "y" if number == 2 * count - 1 else f"v{number}"
        weights += [weight(weight_of(layer, part), SQUARE), weight(bias_of(layer, part), ROW)]
        nodes.append(
            node("MatMul", [source, weights[-2].name], f"p{number}", name_of(layer, part))
        )
        nodes.append(node("Add", [f"p{number}", weights[-1].name], target, f"add_{number}"))
        source = target
    return graph(nodes, weights), [each.name for each in nodes if each.op_type == "MatMul"]


@pytest.mark.parametrize(
    ("weight_of", "bias_of", "name_of"),
    [
        (
            lambda n, k: f"encoder.layer.{n}.part{k}.weight",
            lambda n, k: f"encoder.layer.{n}.part{k}.bias",
            lambda n, k: f"node_{n}{k}",
        ),
        (  # torch.export: the transposed weight has lost its name, the bias has kept it
            lambda n, k: f"val_{n}{k}",
            lambda n, k: f"encoder.layer.{n}.part{k}.bias",
            lambda n, k: f"node_{n}{k}",
        ),
        (  # TorchScript: nodes have scopes
            lambda n, k: f"onnx::MatMul_{n}{k}",
            lambda n, k: f"onnx::Add_{n}{k}",
            lambda n, k: f"/encoder/layer.{n}/part{k}/MatMul",
        ),
    ],
)
def test_modules_that_exporters_name_are_blocks(weight_of, bias_of, name_of):
    made, names = layers(3, weight_of, bias_of, name_of)
    assert find_blocks(made, names) == [
        Block(f"encoder.layer.{n}", (2 * n, 2 * n + 1)) for n in range(3)
    ]


def test_modules_are_distinguished_one_level_further_in_where_the_outer_are_few():
    made, names = layers(
        8,
        lambda n, k: f"stages.0.blocks.{n}.part{k}.weight",
        lambda n, k: f"b_{n}{k}",
        lambda n, k: f"node_{n}{k}",
    )
    assert [each.name for each in find_blocks(made, names)] == [
        f"stages.0.blocks.{n}" for n in range(8)
    ]


def test_a_node_without_a_name_of_its_own_is_where_the_one_before_it_is():
    made, names = layers(
        2,
        lambda n, k: f"h.{n}.fc.weight" if k == 0 else f"val_{n}",
        lambda n, k: f"b_{n}{k}",
        lambda n, k: f"node_{n}{k}",
    )
    assert find_blocks(made, names) == [
        Block("h.0", (0, 1)),
        Block("h.1", (2,)),
        Block("node_11", (3,)),  # nothing after it says so: a head
    ]


def residual(count):
    """v + (v W) (v W') a layer, scaled by a mask that all of them read: nothing has a path."""
    nodes, weights, source = [node("Relu", ["x"], "mask", "mask")], [], "x"
    for n in range(count):
        weights += [weight(f"val_{n}_{k}", SQUARE) for k in range(2)]
        target = "y" if n == count - 1 else f"s{n}"
        nodes += [
            node("MatMul", [source, f"val_{n}_0"], f"a{n}", f"up_{n}"),
            node("MatMul", [source, f"val_{n}_1"], f"b{n}", f"gate_{n}"),
            node("Mul", [f"a{n}", f"b{n}"], f"c{n}", f"mul_{n}"),
            node("Mul", [f"c{n}", "mask"], f"m{n}", f"masked_{n}"),
            node("Add", [source, f"m{n}"], target, f"add_{n}"),
        ]
        source = target
    return graph(nodes, weights), [each.name for each in nodes if each.op_type == "MatMul"]


def test_without_paths_the_graph_is_cut_where_one_value_carries_all():
    made, names = residual(2)
    assert find_blocks(made, names) == [
        Block("up_0 .. gate_0", (0, 1)),
        Block("up_1 .. gate_1", (2, 3)),
    ]


def test_every_node_is_in_one_block_once():
    for made, names in (residual(5), residual(1)):
        held = [n for each in find_blocks(made, names) for n in each.nodes]
        assert held == list(range(len(names)))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("h.3.mlp.c_fc.weight", ("h", "3", "mlp", "c_fc")),
        ("/MatMul_2", ()),
        ("onnxbuild/outlier/3", ()),
    ],
)
def test_a_name_says_its_module_or_nothing(name, path):
    assert module_path(name) == path
