"""Models of one operator each, with weights and inputs as trained models have them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.onnxkit.models import model, value, weight

MICROSOFT = "com.microsoft"


def normal(*shape, scale=1.0):
    """Numbers of their own for each shape and scale, whichever case is made first."""
    numbers = np.random.default_rng([*shape, round(100 * scale)])
    return (numbers.standard_normal(shape) * scale).astype(np.float32)


@dataclass(frozen=True)
class Single:
    """One operator.

    Attributes:
        model: Its graph; the node is called `node`.
        feeds: Its inputs.
    """

    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]


def single(op_type, inputs, feeds, weights=None, *, outputs=("y",), behind=None, **attributes):
    """`op_type` on `inputs`, each a feed's or a weight's name, or empty for one that is left out.

    `behind` computes one of the inputs from a feed: an operator that only passes 8 bits on is
    quantized behind one that makes them. Outputs whose name starts with `i` are int64, with `m` int32; `unused` is none of the model's.
    """
    domain, opset = attributes.pop("domain", ""), attributes.pop("opset", 18)
    node = helper.make_node(op_type, inputs, outputs, name="node", domain=domain, **attributes)
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    kinds = {"i": TensorProto.INT64, "m": TensorProto.INT32}
    made = model(
        [*([] if behind is None else [behind]), node],
        [value(name, [None] * array.ndim, types[name]) for name, array in feeds.items()],
        [
            value(name, None, kinds.get(name[0], TensorProto.FLOAT))
            for name in outputs
            if name != "unused"
        ],
        [weight(name, array) for name, array in (weights or {}).items()],
        imports=[helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)],
    )
    return Single(made, feeds)


def _integers(*numbers):
    return np.array(numbers, np.int64)


TOKENS, IMAGE = normal(2, 5, 16), normal(2, 4, 9, 9)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32)
PROJECTION, PROJECTION_BIAS = normal(16, 48, scale=0.2), normal(48, scale=0.5)


def attention(*others, feeds=None, outputs=("y",), bias="b", **attributes):
    return single(
        "Attention", ["x", "w", bias, *others], {"x": TOKENS, **(feeds or {})},
        {"w": PROJECTION, "b": PROJECTION_BIAS}, outputs=outputs, domain=MICROSOFT,
        num_heads=2, **attributes,
    )  # fmt: skip


def lstm(*others, feeds=None, directions=1, weights=None, **attributes):
    own = {
        "w": normal(directions, 32, 6, scale=0.4),
        "r": normal(directions, 32, 8, scale=0.4),
        "b": normal(directions, 64, scale=0.3),
    }
    return single(
        "LSTM", ["x", "w", "r", "b", *others], {"x": normal(7, 3, 6), **(feeds or {})},
        {**own, **(weights or {})}, outputs=("y", "h", "c"), hidden_size=8, **attributes,
    )  # fmt: skip


def embeddings(*, segments=False, mask=False, positions=None, outputs=("y", "unused")):
    tables = {"words": normal(50, 16), "places": normal(12, 16), "segment": normal(2, 16)}
    norm = {"gamma": np.abs(normal(16)) + np.float32(0.5), "beta": normal(16, scale=0.1)}
    ids = {"ids": np.arange(0, 50, 5, np.int32).reshape(2, 5)}
    named = {"which": MASK, "mask": MASK, "positions": positions}
    wanted = (("which", segments), ("mask", mask), ("positions", positions is not None))
    return single(
        "EmbedLayerNormalization",
        ["ids", "which" if segments else "", "words", "places", "segment" if segments else "",
         "gamma", "beta", "mask" if mask else "", "positions" if positions is not None else ""],
        ids | {name: named[name] for name, there in wanted if there}, {**tables, **norm},
        outputs=outputs, domain=MICROSOFT, epsilon=1e-5,
    )  # fmt: skip


def convolution(filters, *, x=IMAGE, **attributes):
    weights = {"w": filters, "b": normal(filters.shape[0])}
    return single("Conv", ["x", "w", "b"], {"x": x}, weights, **attributes)


def multiplied(matrix, x=TOKENS):
    return single("MatMul", ["x", "w"], {"x": x}, {"w": matrix})


def gemm(**attributes):
    matrix = normal(24, 16, scale=0.1)
    return single(
        "Gemm", ["x", "w", "b"], {"x": normal(5, 16)}, {"w": matrix, "b": normal(24)}, transB=1,
        **attributes,
    )  # fmt: skip


def gathered(table, **attributes):
    ids = np.array([[1, 4, 7], [0, 2, 9]], np.int64)
    return single("Gather", ["t", "ids"], {"ids": ids}, {"t": table}, **attributes)


def shared_recurrent():
    """Two LSTMs that read the same weights."""
    found = lstm()
    made = onnx.ModelProto()
    made.CopyFrom(found.model)
    made.graph.node.add().CopyFrom(made.graph.node[0])
    made.graph.node[1].name = "second"
    del made.graph.node[1].output[:]
    made.graph.node[1].output.extend(["z", "", ""])
    made.graph.output.append(value("z", None))
    return Single(made, found.feeds)


PLACES = np.array([[2, 3, 4, 5, 6]], np.int32)
PADDED_PLACES = np.array([[2, 3, 4, 5, 6], [2, 3, 4, 1, 1]], np.int32)

DYNAMIC: dict[str, Callable[[], Single]] = {
    "Attention": attention,
    "Attention mask": lambda: attention("m", feeds={"m": MASK}),
    "Attention causal": lambda: attention(unidirectional=1),
    "Attention past": lambda: attention(
        "m", "p", outputs=("y", "q"),
        feeds={"m": np.ones((2, 9), np.int32), "p": normal(2, 2, 2, 4, 8)},
    ),
    "Attention scale": lambda: attention(scale=1.0),
    "Conv": lambda: convolution(normal(6, 4, 3, 3, scale=0.2), pads=[1, 1, 1, 1]),
    "Conv uneven padding": lambda: convolution(
        normal(6, 4, 3, 3, scale=0.2), x=IMAGE + 2, pads=[0, 1, 2, 1], strides=[2, 2]
    ),
    "Conv same size": lambda: convolution(
        normal(6, 4, 3, 3, scale=0.2), x=IMAGE + 1, auto_pad="SAME_UPPER", strides=[2, 2]
    ),
    "Conv dilated": lambda: convolution(normal(6, 4, 3, 3, scale=0.2), dilations=[2, 2]),
    "Conv depthwise": lambda: convolution(normal(4, 1, 3, 3, scale=0.2), group=4),
    "Conv grouped": lambda: convolution(normal(6, 2, 3, 3, scale=0.2), group=2),
    "Conv 1d": lambda: convolution(normal(6, 4, 3, scale=0.2), x=normal(2, 4, 9)),
    "Conv 3d": lambda: convolution(normal(6, 4, 3, 3, 3, scale=0.2), x=normal(2, 4, 5, 6, 7)),
    "EmbedLayerNormalization": embeddings,
    "EmbedLayerNormalization segments": lambda: embeddings(segments=True),
    "EmbedLayerNormalization mask": lambda: embeddings(mask=True, outputs=("y", "mask_index")),
    "EmbedLayerNormalization positions": lambda: embeddings(positions=PLACES),
    "EmbedLayerNormalization padded positions": lambda: embeddings(positions=PADDED_PLACES),
    "EmbedLayerNormalization all": lambda: embeddings(
        segments=True, positions=PADDED_PLACES, outputs=("y", "unused", "sum")
    ),
    "Gather": lambda: gathered(normal(10, 16)),
    "Gather far from zero": lambda: gathered(normal(10, 16) + 3),
    "Gather columns": lambda: gathered(normal(4, 10), axis=1),
    "Gather numbers": lambda: gathered(normal(10)),
    "Gemm": gemm,
    "LSTM": lstm,
    "LSTM both ways": lambda: lstm(directions=2, direction="bidirectional"),
    "LSTM reverse": lambda: lstm(direction="reverse"),
    "LSTM states": lambda: lstm(
        "", "h0", "c0", feeds={"h0": normal(1, 3, 8), "c0": normal(1, 3, 8)}
    ),
    "LSTM lengths": lambda: lstm("lengths", feeds={"lengths": np.array([7, 4, 2], np.int32)}),
    "LSTM peepholes": lambda: lstm("", "", "", "p", weights={"p": normal(1, 24)}),
    "LSTM activations": lambda: lstm(activations=["HardSigmoid", "Relu", "Softsign"], clip=0.5),
    "MatMul": lambda: multiplied(normal(16, 24, scale=0.1)),
    "MatMul one column": lambda: multiplied(normal(16, 1, scale=0.1)),
    "MatMul stack": lambda: multiplied(normal(2, 16, 24, scale=0.1)),
    "MatMul stacks": lambda: multiplied(normal(3, 2, 16, 24, scale=0.1), normal(3, 2, 5, 16)),
    "Transpose": lambda: single(
        "Transpose", ["picked"], {"ids": _integers(1, 4, 7)}, {"t": normal(10, 16)}, perm=[1, 0],
        behind=helper.make_node("Gather", ["t", "ids"], ["picked"], name="before"),
    ),
}  # fmt: skip
"""What the dynamic quantizer takes; the first word is the operator's type."""


def passing(op_type, inputs=("s",), x=TOKENS, weights=None, **attributes):
    """An operator behind a sum, which makes 8 bits that it passes on."""
    before = helper.make_node("Add", ["x", "x"], ["s"], name="before")
    return single(op_type, list(inputs), {"x": x}, weights, behind=before, **attributes)


def unary(op_type, x=TOKENS, weights=None, **attributes):
    return single(op_type, ["x", *(weights or {})], {"x": x}, weights, **attributes)


def binary(op_type, **attributes):
    return single(op_type, ["x", "z"], {"x": TOKENS, "z": normal(2, 5, 16, scale=2)}, **attributes)


STATIC: dict[str, Callable[[], Single]] = {
    **{
        name: DYNAMIC[name]
        for name in DYNAMIC
        if name.split()[0] in {"Conv", "EmbedLayerNormalization", "Gather", "Gemm", "MatMul"}
    },
    "Add": lambda: binary("Add"),
    "ArgMax": lambda: unary("ArgMax", outputs=("i",), axis=2),
    "AveragePool": lambda: passing("AveragePool", x=IMAGE, kernel_shape=[2, 2]),
    "AveragePool padded": lambda: passing(
        "AveragePool", x=IMAGE + 2, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1
    ),
    "BatchNormalization": lambda: unary(
        "BatchNormalization", IMAGE,
        {"s": normal(4) + 1, "b": normal(4), "m": normal(4), "v": np.abs(normal(4)) + 1},
    ),
    "Clip": lambda: passing(
        "Clip", ("s", "lo", "hi"), weights={"lo": np.float32(-0.5), "hi": np.float32(0.7)}
    ),
    "Concat": lambda: binary("Concat", axis=2),
    "ConvTranspose": lambda: unary(
        "ConvTranspose", IMAGE, {"w": normal(4, 6, 3, 3, scale=0.2), "b": normal(6)}
    ),
    "ConvTranspose strided": lambda: unary(
        "ConvTranspose", IMAGE, {"w": normal(4, 6, 3, 3, scale=0.2)}, strides=[2, 2], pads=[1] * 4
    ),
    "CumSum": lambda: unary("CumSum", weights={"a": np.int64(1)}),
    "Flatten": lambda: passing("Flatten"),
    "GatherElements": lambda: passing(
        "GatherElements", ("s", "n"), weights={"n": np.zeros((2, 5, 3), np.int64)}, axis=2
    ),
    "Gemm factors": lambda: gemm(alpha=0.5, beta=2.0),
    "GlobalAveragePool": lambda: unary("GlobalAveragePool", IMAGE),
    "InstanceNormalization": lambda: unary(
        "InstanceNormalization", IMAGE, {"s": normal(4) + 1, "b": normal(4)}
    ),
    "LayerNormalization": lambda: unary(
        "LayerNormalization", weights={"s": normal(16) + 1, "b": normal(16)}
    ),
    "LayerNormalization without a bias": lambda: unary(
        "LayerNormalization", weights={"s": normal(16) + 1}
    ),
    "LeakyRelu": lambda: unary("LeakyRelu"),
    "MatMul of activations": lambda: single(
        "MatMul", ["x", "z"], {"x": TOKENS, "z": normal(2, 16, 5)}
    ),
    "MatMul vector": lambda: multiplied(normal(16, scale=0.1)),
    "MaxPool": lambda: passing("MaxPool", x=IMAGE, kernel_shape=[2, 2]),
    "Mul": lambda: binary("Mul"),
    "Pad": lambda: unary("Pad", IMAGE + 5, {"p": _integers(0, 0, 1, 1, 0, 0, 1, 1)}),
    "Pad constant": lambda: unary(
        "Pad", IMAGE, {"p": _integers(0, 0, 1, 1, 0, 0, 1, 1), "v": np.float32(-9)}
    ),
    "Pad reflected": lambda: unary(
        "Pad", IMAGE, {"p": _integers(0, 0, 1, 1, 0, 0, 1, 1)}, mode="reflect"
    ),
    "Relu": lambda: passing("Relu"),
    "Reshape": lambda: passing("Reshape", ("s", "to"), weights={"to": _integers(-1, 16)}),
    "Resize": lambda: passing(
        "Resize", ("s", "", "by"), IMAGE, {"by": np.array([1, 1, 2, 2], np.float32)}, mode="linear"
    ),
    "Resize nearest": lambda: passing(
        "Resize", ("s", "", "by"), IMAGE, {"by": np.array([1, 1, 2, 2], np.float32)}
    ),
    "Sigmoid": lambda: unary("Sigmoid", 3 * TOKENS),
    "Slice": lambda: passing(
        "Slice", ("s", "from", "to", "axis"),
        weights={"from": _integers(1), "to": _integers(4), "axis": _integers(1)},
    ),
    "Softmax": lambda: unary("Softmax"),
    "Softmax flat": lambda: unary("Softmax", normal(2, 3, 4096)),
    "Split": lambda: unary("Split", outputs=("y", "z"), axis=2, num_outputs=2),
    "Squeeze": lambda: passing("Squeeze", ("s", "a"), normal(1, 5, 6), {"a": _integers(0)}),
    "TopK": lambda: passing("TopK", ("s", "k"), weights={"k": _integers(3)}, outputs=("y", "unused")),
    "Transpose": lambda: passing("Transpose", perm=[0, 2, 1]),
    "Unsqueeze": lambda: passing("Unsqueeze", ("s", "a"), weights={"a": _integers(0)}),
    "Where": lambda: single(
        "Where", ["c", "s", "t"], {"x": TOKENS, "c": TOKENS > 0}, {"t": normal(16)},
        behind=helper.make_node("Add", ["x", "x"], ["s"], name="before"),
    ),
}  # fmt: skip
"""What the static quantizer takes; the first word is the operator's type."""

WEIGHTS: dict[str, Callable[[], Single]] = {
    "MatMul": lambda: multiplied(normal(48, 24, scale=0.1), normal(2, 5, 48)),
    "Gemm": gemm,
    "Gather": lambda: gathered(normal(10, 48)),
}
"""What weights are kept in few bits of; the first word is the operator's type."""
