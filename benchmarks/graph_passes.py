"""Whether graph passes take time in proportion to the graph: 8 times the nodes, how many times the seconds.

Canonical form, dropped pairs of casts, balance of channels, and the page of `view`, each on chains of two
lengths in turn.

    python benchmarks/graph_passes.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.onnxkit.fp16.casts import drop_cast_pairs
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.pictures.page import model_page
from onnxbuild.onnxkit.quantize.balancing import balance_values, normalized_values

GROWTH = 8


def chain(count: int) -> onnx.ModelProto:
    """Adds of constants, in the wrong order."""
    nodes = [
        helper.make_node("Add", [f"v{n}", f"w{n}"], [f"v{n + 1}"], f"n{n}") for n in range(count)
    ]
    weights = [numpy_helper.from_array(np.ones(1, np.float32), f"w{n}") for n in range(count)]
    return made(nodes[::-1], "v0", f"v{count}", [1], weights)


def casts(count: int) -> onnx.ModelProto:
    """A pair of casts behind each Relu."""
    nodes, last = [], "x"
    for n in range(count):
        nodes += [
            helper.make_node("Relu", [last], [f"a{n}"]),
            helper.make_node("Cast", [f"a{n}"], [f"h{n}"], to=TensorProto.FLOAT16),
            helper.make_node("Cast", [f"h{n}"], [f"b{n}"], to=TensorProto.FLOAT),
        ]
        last = f"b{n}"
    graph = made(nodes, "x", last, [1], [])
    graph.graph.value_info.extend(
        helper.make_tensor_value_info(f"{kind}{n}", TensorProto.FLOAT, [1])
        for kind in "ab"
        for n in range(count)
    )
    return graph


def blocks(count: int) -> onnx.ModelProto:
    """A normalization and a product in each layer."""
    nodes, weights, last = [], [], "x"
    for n in range(count):
        nodes += [
            helper.make_node("LayerNormalization", [last, f"s{n}"], [f"a{n}"], f"norm{n}"),
            helper.make_node("MatMul", [f"a{n}", f"u{n}"], [f"b{n}"], f"up{n}"),
        ]
        weights += [
            numpy_helper.from_array(np.ones(16, np.float32), f"s{n}"),
            numpy_helper.from_array(np.eye(16, dtype=np.float32), f"u{n}"),
        ]
        last = f"b{n}"
    return made(nodes, "x", last, ["n", 16], weights)


def made(
    nodes: list[onnx.NodeProto],
    first: str,
    last: str,
    shape: list[int | str],
    weights: list[onnx.TensorProto],
) -> onnx.ModelProto:
    """A model of one input and one output."""
    ends = [
        [helper.make_tensor_value_info(each, TensorProto.FLOAT, shape)] for each in (first, last)
    ]
    graph = helper.make_graph(nodes, "graph", *ends, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def balance(model: onnx.ModelProto) -> None:
    """Even out each normalization's channels."""
    peak = np.float32([1] * 15 + [9])
    balance_values(model, dict.fromkeys(normalized_values(model), peak))


def picture(model: onnx.ModelProto) -> None:
    """Write the page of `view`; no two neighbours have one operator, so nothing is folded."""
    kinds = ("Relu", "Tanh", "Abs", "Neg", "Exp", "Sigmoid", "Softplus")
    for n, node in enumerate(model.graph.node):
        if node.op_type == "Relu":
            node.op_type = kinds[(n * n + n // 7) % len(kinds)]
    model_page(model, "benchmark", 0)


PASSES: dict[
    str, tuple[Callable[[int], onnx.ModelProto], Callable[[onnx.ModelProto], object], int]
] = {
    "canonicalize": (chain, canonicalize, 500),
    "drop_cast_pairs": (casts, drop_cast_pairs, 500),
    "balance_values": (blocks, balance, 100),
    "model_page": (blocks, picture, 50),
}


def seconds(
    make: Callable[[int], onnx.ModelProto], run: Callable[[onnx.ModelProto], object], count: int
) -> float:
    """CPU time of one pass."""
    model = make(count)
    start_s = time.process_time()
    run(model)
    return time.process_time() - start_s


def main() -> None:
    """Print a line for each pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = range(parser.parse_args().rounds)
    for name, (make, run, count) in PASSES.items():
        turns = [(seconds(make, run, count), seconds(make, run, GROWTH * count)) for _ in rounds]
        few, many = (min(each) for each in zip(*turns, strict=True))
        print(
            f"{name:16} {count:5} -> {GROWTH * count:5}: {1e3 * few:7.1f} -> {1e3 * many:7.1f} ms, {many / few:.1f} x"
        )


if __name__ == "__main__":
    main()
