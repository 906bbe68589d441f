"""A small graph like a transformer's: normalized values, MLPs, and channels that stand out."""

import numpy as np
from onnx import helper

from tests.onnxkit.models import model, value, weight

WIDTH, HIDDEN, OUTLIERS = 32, 64, (3, 40)
MICROSOFT = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]


def transformer(
    *, activation="Gelu", gemm=False, domain="com.microsoft", opset=18, norm=True, residual=True
):
    """y = W2 act(W1 n + b1) + Wq n for n = LayerNormalization(x).

    Two of the hidden channels reach far beyond the others, as do some of n's; a second
    multiplication, and y itself (by a residual: else it reads x), read n too.
    """
    draw = np.random.default_rng(7).standard_normal
    gamma = np.exp(draw(WIDTH)).astype(np.float32)
    gamma[5] *= 20
    up = (draw((WIDTH, HIDDEN)) / 12).astype(np.float32)
    up /= np.maximum(gamma, 1)[:, None]
    down = (draw((HIDDEN, WIDTH)) / 8).astype(np.float32)
    bias = (draw(HIDDEN) / 4).astype(np.float32)
    up[:, OUTLIERS] *= 40
    bias[list(OUTLIERS)] += 30
    down[list(OUTLIERS)] /= 10
    weights = [
        weight("gamma", gamma),
        weight("beta", np.zeros(WIDTH, np.float32)),
        weight("up", up.T.copy() if gemm else up),
        weight("bias", bias),
        weight("down", down),
        weight("query", (draw((WIDTH, WIDTH)) / np.maximum(gamma, 1)[:, None]).astype(np.float32)),
    ]
    first = [helper.make_node("Gemm", ["n", "up", "bias"], ["b"], name="up_product", transB=1)]
    if not gemm:
        first = [
            helper.make_node("MatMul", ["n", "up"], ["u"], name="up_product"),
            helper.make_node("Add", ["u", "bias"], ["b"], name="up_bias"),
        ]
    middle = [helper.make_node(activation, ["b"], ["h"], name="activation", domain=domain)]
    if activation == "SiLU":
        middle = [
            helper.make_node("Sigmoid", ["b"], ["gate"], name="gate"),
            helper.make_node("Mul", ["b", "gate"], ["h"], name="activation"),
        ]
    start = [helper.make_node("LayerNormalization", ["x", "gamma", "beta"], ["n"], name="norm")]
    if not norm:
        start = [helper.make_node("Mul", ["x", "gamma"], ["n"], name="norm")]
    nodes = [
        *start,
        *first,
        *middle,
        helper.make_node("MatMul", ["h", "down"], ["d"], name="down_product"),
        helper.make_node("MatMul", ["n", "query"], ["q"], name="query_product"),
        helper.make_node("Add", ["d", "q"], ["s"], name="sum"),
        helper.make_node("Add", ["s", "n" if residual else "x"], ["y"], name="residual"),
    ]
    shape = ["batch", WIDTH] if gemm else ["batch", "tokens", WIDTH]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return model(nodes, [value("x", shape)], [value("y", shape)], weights, imports=imports)


def tokens(seed, batch=4, count=6):
    """Feeds of the transformer."""
    draw = np.random.default_rng(seed).standard_normal
    return {"x": draw((batch, count, WIDTH)).astype(np.float32)}


def calibration():
    for seed in range(8):
        yield tokens(seed)


def rows():
    for seed in range(8):
        yield {"x": tokens(seed)["x"][0]}


def nothing():
    yield from ()


def broken():
    feeds = tokens(0)
    feeds["x"] = feeds["x"] * np.float32(0) - np.float32(np.inf)
    yield feeds
