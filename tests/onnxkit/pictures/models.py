"""Small models to draw: named as exporters name them, or not at all."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def weight(name: str, *shape: int, dtype: str = "float32") -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(shape, dtype), name)


def model_of(  # noqa: PLR0917 - a graph has as many parts
    nodes, weights=(), inputs=("x",), outputs=("y",), functions=(), domains=()
) -> onnx.ModelProto:
    def values(names):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 32]) for n in names]

    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), weights)
    opsets = [helper.make_opsetid(each, 1) for each in domains]
    return helper.make_model(
        graph, functions=functions, opset_imports=[helper.make_opsetid("", 18), *opsets]
    )


def transformer(layers: int = 12, *, named: bool = True) -> onnx.ModelProto:
    """Per layer: three projections, their product, an output with its residual, and two dense ones."""
    nodes, weights = [], []

    def name(path: str) -> str:
        return f"model.{path}" if named else f"w{len(weights)}"

    def dense(path: str, source: str, target: str, into: int = 32, out: int = 32) -> None:
        held = weight(f"onnx::MatMul_{len(weights)}", into, out)
        bias = weight(name(f"{path}.bias"), out)
        weights.extend([held, bias])
        nodes.append(helper.make_node("MatMul", [source, held.name], [f"{target}_m"]))
        nodes.append(helper.make_node("Add", [f"{target}_m", bias.name], [target]))

    dense("embeddings.project", "x", "h0")
    for n in range(layers):
        layer, into = f"encoder.layer.{n}", f"h{n}"
        for part in ("query", "key", "value"):
            dense(f"{layer}.attention.{part}", into, f"{part}{n}")
        nodes.append(helper.make_node("Mul", [f"query{n}", f"key{n}"], [f"scores{n}"]))
        nodes.append(helper.make_node("Softmax", [f"scores{n}"], [f"soft{n}"]))
        nodes.append(helper.make_node("Mul", [f"soft{n}", f"value{n}"], [f"mixed{n}"]))
        dense(f"{layer}.attention.out", f"mixed{n}", f"att{n}")
        nodes.append(helper.make_node("Add", [f"att{n}", into], [f"mid{n}"]))
        dense(f"{layer}.up", f"mid{n}", f"up{n}", 32, 64)
        nodes.append(helper.make_node("Relu", [f"up{n}"], [f"act{n}"]))
        dense(f"{layer}.down", f"act{n}", f"down{n}", 64, 32)
        nodes.append(helper.make_node("Add", [f"down{n}", f"mid{n}"], [f"h{n + 1}"]))
    dense("head", f"h{layers}", "y")
    return model_of(nodes, weights)


def branching() -> onnx.ModelProto:
    """An If whose branches read the graph around them, with weights of their own."""

    def branch(name: str, kind: str) -> onnx.GraphProto:
        made = helper.make_tensor_value_info("made", TensorProto.FLOAT, None)
        node = helper.make_node(kind, ["x", f"{name}.weight"], ["made"], name=f"{name}/{kind}")
        return helper.make_graph([node], name, [], [made], [weight(f"{name}.weight", 32, 32)])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["yes"], to=TensorProto.BOOL),
        helper.make_node(
            "If", ["yes"], ["y"], name="chooser",
            then_branch=branch("then", "MatMul"), else_branch=branch("else", "Add"),
        ),
    ]  # fmt: skip
    return model_of(nodes)
