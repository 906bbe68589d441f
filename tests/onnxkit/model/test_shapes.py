import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.onnxkit.model.blocks import Block, find_blocks, module_path
from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.shapes import drop_false_shapes, name_output_axes
from tests.onnxkit.models import model, value, weight


def shapes(made):
    return {each.name: dimensions(each) for each in made.graph.value_info}


def chain(rows="rows", inside=(), shape=("any", 4)):
    """y = Reshape(Relu(x)): inference knows what Relu gives, and not what a computed shape makes of it."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Reshape", ["r", "shape"], ["s"]),
        helper.make_node("MatMul", ["s", "w"], ["y"]),
    ]
    inputs = [value("x", [rows, 4]), value("shape", [2], 7)]
    return model(
        nodes, inputs, [value("y", shape)], [weight("w", np.ones((4, 400), "float32"))],
        value_info=[value(name, dims) for name, dims in inside],
    )  # fmt: skip


def test_a_size_in_place_of_an_inputs_axis_is_false_and_what_may_follow_from_it_goes_too():
    made = chain(inside=[("r", [7, 4]), ("s", [14, 2])])
    assert drop_false_shapes(made)
    assert shapes(made) == {"r": ["rows", 4], "s": ["?", "?"]}


def test_a_false_output_misleads_nobody_and_weights_keep_their_bytes():
    made = chain(inside=[("r", [7, 4])], shape=[9, 9])
    assert drop_false_shapes(made)
    assert shapes(made) == {"r": ["rows", 4]}
    assert dimensions(made.graph.output[0]) == [9, 9]  # `name_output_axes` sets it right
    assert len(made.graph.initializer[0].raw_data) == 6400


def test_bodies_are_corrected_too():
    body = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Abs", ["t"], ["u"])],
        "then", [], [value("u", None)], value_info=[value("t", [7, 4])],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["e"])], "else", [], [value("e", None)]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=other)
    made = model([node], [value("x", ["rows", 4]), value("c", [], 9)], [value("y", None)])
    assert drop_false_shapes(made)
    (then,) = (each.g for each in made.graph.node[0].attribute if each.name == "then_branch")
    assert dimensions(then.value_info[0]) == ["rows", 4]


def named(shape, *observed, largest=None):
    node = helper.make_node("Identity", ["x"], ["y"])
    made = model([node], [value("x", ["b", "s"])], [value("y", shape)])
    runs = [(sizes, [result]) for sizes, result in observed]
    name_output_axes(made, runs, ["b", "s"], largest or (lambda _: None))
    return dimensions(made.graph.output[0])


FIRST, SECOND = {"b": 2, "s": 5}, {"b": 3, "s": 7}


def test_a_dimension_that_follows_an_axis_gets_its_name():
    assert named(["Add_0", "Add_1", 4], (FIRST, (5, 2, 4)), (SECOND, (7, 3, 4))) == ["s", "b", 4]


def test_a_formula_is_kept_and_a_made_up_name_replaced():
    assert named(["2*b"], (FIRST, (4,)), (SECOND, (6,))) == ["2*b"]
    assert named(["Reshape_3_dim_0"], (FIRST, (4,)), (SECOND, (6,))) == ["y_dim_0"]


def test_a_size_that_the_graph_wrongly_fixes_is_set_right():
    assert named([2, 4], (FIRST, (2, 4)), (SECOND, (3, 4))) == ["b", 4]


@pytest.mark.parametrize("name", ["2*b*/ evil", "b; evil()", "b\\"])
def test_a_name_that_is_no_formula_is_replaced_though_an_axis_is_in_it(name):
    assert named([name], (FIRST, (4,)), (SECOND, (6,))) == ["y_dim_0"]


def first_three(axis):
    sizes = {**FIRST, axis: 100}
    return sizes, [(min(sizes["b"], 3), sizes["s"])]


def test_a_dimension_that_has_an_axis_size_only_up_to_a_limit_does_not_get_its_name():
    seen = (FIRST, (2, 5)), (SECOND, (3, 7))
    assert named(["K", "?"], *seen, largest=first_three) == ["y_dim_0", "s"]
    assert named(["Min(3, b)", "s"], *seen, largest=first_three) == ["Min(3, b)", "s"]


def test_a_name_that_the_graph_itself_gives_is_not_tried_at_the_maximum():
    def largest(axis):
        raise AssertionError(axis)

    assert named(["b", "s"], (FIRST, (2, 5)), (SECOND, (3, 7)), largest=largest) == ["b", "s"]


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
