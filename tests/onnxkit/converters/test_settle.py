"""Order and names that a converter leaves to chance follow from the graph alone."""

import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.steps.convert_model import settle


def converted(seed):
    """One graph as tf2onnx might leave it: nodes and weights in any order that is valid, numbers of any counter."""
    dice = random.Random(seed)
    count = iter(dice.sample(range(100), 20))
    names = {key: f"{stem}__{next(count)}" for key, stem in (("one", "const"), ("two", "const"))}
    t, s = f"Transpose__{next(count)}:0", f"body/add__{next(count)}"
    branch = helper.make_graph(
        [helper.make_node("Mul", [t, names["two"]], ["scaled"], name=f"Mul__{next(count)}")],
        "branch",
        [],
        [helper.make_tensor_value_info("scaled", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("Transpose", ["x"], [t], name=f"Transpose__{next(count)}"),
        helper.make_node("Add", ["z", names["one"]], [s]),
        helper.make_node("Neg", [s], ["unread"]),
    ]
    dice.shuffle(nodes[:2])
    if dice.random() < 0.5:
        nodes[:2] = nodes[1::-1]
    nodes += [
        helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("Relu", [s], ["w"]),
    ]
    weights = [
        numpy_helper.from_array(np.full((1,), value, np.float32), names[key])
        for key, value in (("one", 1), ("two", 2))
    ]
    dice.shuffle(weights)
    sized = lambda name: helper.make_tensor_value_info(  # noqa: E731
        name, TensorProto.FLOAT, [f"unk__{next(count)}", 2]
    )
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    graph = helper.make_graph(
        nodes, "tf2onnx", [sized("x"), sized("z"), flag], [sized("y"), sized("w")], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def settled(seed):
    model = converted(seed)
    settle(model)
    canonicalize(model)
    return model


def test_the_same_graph_gives_the_same_bytes():
    assert len({converted(seed).SerializeToString() for seed in range(20)}) == 20
    assert len({settled(seed).SerializeToString() for seed in range(20)}) == 1


def test_names_lose_their_numbers_and_stay_apart():
    graph = settled(0).graph
    assert [each.op_type for each in graph.node] == ["Transpose", "If", "Add", "Relu"]
    assert graph.node[0].output[0] == "Transpose:0"
    assert graph.node[2].output[0] == "body/add"
    assert sorted(each.name for each in graph.initializer) == ["const", "const_1"]
    assert [each.name for each in (*graph.input, *graph.output)] == ["x", "z", "flag", "y", "w"]
    assert not any(each.type.tensor_type.shape.dim[0].dim_param for each in graph.input[:2])
