import numpy as np
from onnx import helper

from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.shapes import drop_false_shapes
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
