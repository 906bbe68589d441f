"""Small ONNX models, made by hand."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, inputs, outputs, weights=(), *, opset=18, imports=None, **graph):
    made = helper.make_graph(nodes, "any", inputs, outputs, list(weights), **graph)
    opsets = imports or [helper.make_opsetid("", opset)]
    return helper.make_model(made, opset_imports=opsets, ir_version=10)


def linear(rows=4, columns=3, **options):
    """y = Relu(x @ w + b), batch dynamic."""
    generator = np.random.default_rng(0)
    w = weight("w", generator.standard_normal((rows, columns)).astype(np.float32))
    b = weight("b", np.zeros(columns, np.float32))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], name="multiply"),
        helper.make_node("Add", ["xw", "b"], ["sum"], name="shift"),
        helper.make_node("Relu", ["sum"], ["y"], name="clip"),
    ]
    return model(
        nodes, [value("x", ["batch", rows])], [value("y", ["batch", columns])], [w, b], **options
    )


def contrib():
    """y = com.microsoft.Gelu(x)."""
    return model(
        [helper.make_node("Gelu", ["x"], ["y"], name="gelu", domain="com.microsoft")],
        [value("x", ["batch", 4])],
        [value("y", ["batch", 4])],
        imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)],
    )


def branching():
    """y = x + w if c else x, with `w` captured by the subgraph."""
    then = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["t"])], "then", [], [value("t", [2])]
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["e"])], "else", [], [value("e", [2])]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    return model(
        [node],
        [value("x", [2]), value("c", [], TensorProto.BOOL)],
        [value("y", [2])],
        [weight("w", np.ones(2, np.float32))],
    )


def save(made, path):
    onnx.save(made, str(path))
    return path
