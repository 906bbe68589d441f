"""Overrides for ONNX Runtime's static quantizer where its own choice gives a wrong model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

_MATRIX = 2
_LEAST_STEPS = 16


def static_overrides(
    model: onnx.ModelProto,
    ranges: Mapping[str, tuple[float, float]],
    weight_type: Any,
    *,
    per_channel: bool,
    bits: int,
) -> dict[str, list[dict[str, Any]]]:
    """`TensorQuantOverrides` for stacks of matrices, left factors, and the outputs of flat Softmaxes.

    A constant of more than two axes that a MatMul reads gets one scale: by channel, the quantizer
    takes its second axis for the outputs, and QLinearMatMul refuses the zero points when the model
    runs. So does a constant that is the left factor, whose second axis is summed over. The quantizer gives each Softmax the range 0 to 1: where the calibrated values would have
    fewer than 16 of its steps, they get their own range.

    Args:
        model: In fp32, its weights as initializers.
        ranges: Value name -> its calibrated range.
        weight_type: ONNX Runtime's QuantType of weights.
        per_channel: Whether each channel of a weight gets a scale.
        bits: Of activations.
    """
    import numpy as np

    ranks = {each.name: len(each.dims) for each in model.graph.initializer}
    overrides: dict[str, list[dict[str, Any]]] = {}
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx"):
            continue
        if node.op_type == "MatMul" and per_channel:
            single = {name for name in node.input if ranks.get(name, 0) > _MATRIX}
            single |= {node.input[0]} & ranks.keys()
            overrides |= {name: [{"quant_type": weight_type}] for name in single}
        if node.op_type == "Softmax" and node.output[0] in ranges:
            greatest = np.array(ranges[node.output[0]][1], np.float32)
            if 0.0 < greatest < _LEAST_STEPS / 2**bits:
                overrides[node.output[0]] = [{"rmin": np.zeros_like(greatest), "rmax": greatest}]
    return overrides
