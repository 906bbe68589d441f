"""The models that are measured: a transformer's encoder and a convolutional network, written node by node."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PRECISIONS = ("fp32", "fp16", "int8")
_CLASSES = 100


@dataclass(frozen=True, slots=True)
class Size:
    """Sizes of the models.

    Attributes:
        layers: Of each.
        width: Features of the encoder, channels of the network.
        batch: Rows of the encoder's input, images of the network's.
        length: Tokens a row, pixels a side.
    """

    layers: int
    width: int
    batch: int
    length: int


SIZES = {
    "encoder": {"base": Size(6, 768, 8, 128), "tiny": Size(1, 32, 2, 8)},
    "convnet": {"base": Size(8, 128, 16, 56), "tiny": Size(2, 8, 2, 8)},
}


def feeds_of(model: str, size: str, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Return the input `x` of a model: float32, (batch, length, width) or (batch, width, length, length)."""
    given = SIZES[model][size]
    shape = (given.batch, given.length, given.width)
    if model == "convnet":
        shape = (given.batch, given.width, given.length, given.length)
    return {"x": np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)}


def write_model(model: str, size: str, precision: str, folder: Path) -> Path:
    """Write a model in one precision, and return its path.

    INT8 is QDQ, symmetric, weights by channel, calibrated on three inputs: what TensorRT and the CUDA provider take.

    Args:
        model: `encoder` or `convnet`.
        size: `base` or `tiny`.
        precision: One of `PRECISIONS`; inputs and outputs are float32 in all.
        folder: Where to.
    """
    import onnx

    path = folder / f"{model}-{precision}.onnx"
    if precision == "int8":
        exact = write_model(model, size, "fp32", folder)
        _quantize(exact, path, [feeds_of(model, size, seed) for seed in (1, 2, 3)])
        return path
    graph = _Graph(np.float16 if precision == "fp16" else np.float32)
    given = SIZES[model][size]
    shape = feeds_of(model, size)["x"].shape
    x = graph.input("x", shape)
    if model == "encoder":
        made = graph.model(_encoder(graph, x, given), shape)
    else:
        made = graph.model(_convnet(graph, x, given), (given.batch, _CLASSES))
    onnx.save(made, path)
    return path


def _encoder(graph: _Graph, x: str, size: Size) -> str:
    for _ in range(size.layers):
        q, k, v = (graph.linear(x, size.width, size.width) for _ in range(3))
        scores = graph.node("MatMul", q, graph.node("Transpose", k, perm=[0, 2, 1]))
        weights = graph.node(
            "Softmax", graph.node("Mul", scores, graph.constant(size.width**-0.5)), axis=-1
        )
        x = graph.normalized(graph.node("Add", x, graph.node("MatMul", weights, v)), size.width)
        hidden = graph.node("Relu", graph.linear(x, size.width, 4 * size.width))
        x = graph.normalized(
            graph.node("Add", x, graph.linear(hidden, 4 * size.width, size.width)), size.width
        )
    return x


def _convnet(graph: _Graph, x: str, size: Size) -> str:
    for _ in range(size.layers):
        weight = graph.weight(size.width, size.width, 3, 3, fan_in=9 * size.width)
        bias = graph.weight(size.width, fan_in=size.width)
        x = graph.node(
            "Relu", graph.node("Conv", x, weight, bias, pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        )
    return graph.linear(
        graph.node("Flatten", graph.node("GlobalAveragePool", x)), size.width, _CLASSES
    )


class _Graph:
    """Nodes, weights and names of a graph under way, all of one float type."""

    def __init__(self, dtype: type[np.floating[Any]]) -> None:
        self.dtype, self.random = np.dtype(dtype), np.random.default_rng(7)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[Any] = []

    def input(self, name: str, shape: tuple[int, ...]) -> str:
        from onnx import TensorProto, helper

        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return (
            self.node("Cast", name, to=helper.np_dtype_to_tensor_dtype(self.dtype))
            if self.dtype != np.float32
            else name
        )

    def node(self, operator: str, *inputs: str, **attributes: object) -> str:
        from onnx import helper

        name = f"v{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(operator, inputs, [name], name=f"{operator}_{name}", **attributes)
        )
        return name

    def _tensor(self, value: np.ndarray[Any, Any]) -> str:
        from onnx import numpy_helper

        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value.astype(self.dtype), name))
        return name

    def constant(self, value: float) -> str:
        return self._tensor(np.array(value))

    def weight(self, *shape: int, fan_in: int) -> str:
        return self._tensor(self.random.standard_normal(shape) * (2 / fan_in) ** 0.5)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        product = self.node("MatMul", x, self.weight(inputs, outputs, fan_in=2 * inputs))
        return self.node("Add", product, self.weight(outputs, fan_in=inputs))

    def normalized(self, x: str, width: int) -> str:
        scale, bias = self._tensor(np.ones(width)), self._tensor(np.zeros(width))
        return self.node("LayerNormalization", x, scale, bias, axis=-1)

    def model(self, output: str, shape: tuple[int, ...]) -> Any:
        from onnx import TensorProto, checker, helper

        self.nodes.append(helper.make_node("Cast", [output], ["y"], to=TensorProto.FLOAT))
        value = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "measured", self.inputs, [value], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        checker.check_model(made)
        return made


def _quantize(exact: Path, path: Path, feeds: list[dict[str, np.ndarray[Any, Any]]]) -> None:
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Feeds(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = iter(feeds)

        def get_next(self) -> Any:
            return next(self.left, None)

    symmetric = {"ActivationSymmetric": True, "WeightSymmetric": True}
    logging.getLogger().setLevel(
        logging.ERROR
    )  # it advises shape inference, which these graphs don't need
    quantize_static(
        exact,
        path,
        Feeds(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["MatMul", "Conv"],
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        extra_options=symmetric,
    )
