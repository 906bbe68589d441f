"""Biases of Gemms, whose factor and shapes ONNX Runtime's QDQ quantizer gets wrong (1.31)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.external_data import weight_array

if TYPE_CHECKING:
    import onnx

_BIAS = 2


def fold_beta(model: onnx.ModelProto) -> tuple[str, ...]:
    """Multiply constant biases by their Gemm's beta and broadcast them to vectors, in place.

    The quantizer sets beta to 1 and keeps the bias as it was (operators/gemm.py,
    set_default_beta; base_quantizer.py, quantize_bias_static_impl), so that a model with another
    beta gives wrong numbers without an error. With a scale a channel it fails on a bias that is no
    vector of channels (qdq_quantizer.py, _adjust_weight_scale_for_int32_bias).

    Returns: The names of Gemms that can't be quantized: their bias is no float32 initializer and
    has a factor, or it differs by row.
    """
    import numpy as np
    import onnx

    initializers = {
        each.name: each
        for each in model.graph.initializer
        if each.data_type == onnx.TensorProto.FLOAT
    }
    left = []
    for node in model.graph.node:
        if node.op_type != "Gemm" or len(node.input) <= _BIAS or not node.input[_BIAS]:
            continue
        beta = next((each for each in node.attribute if each.name == "beta"), None)
        factor = 1.0 if beta is None else beta.f
        bias = initializers.get(node.input[_BIAS])
        if bias is None:
            left += [] if factor == 1.0 else [node.name]
            continue
        channels = _channels(node, initializers.get(node.input[1]))
        is_vector = channels in (None, *bias.dims) and len(bias.dims) == 1
        if factor == 1.0 and (is_vector or channels is None):
            continue
        folded = weight_array(bias) * factor
        if channels is not None and not is_vector:
            if folded.size not in (1, channels) or folded.shape[:-1] not in ((), (1,)):
                left.append(node.name)
                continue
            folded = np.broadcast_to(folded.reshape(-1), (channels,))
        name = f"{node.name}/scaled_bias"
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(folded.astype("float32"), name)
        )
        node.input[_BIAS] = name
        if beta is not None:
            beta.f = 1.0
    return tuple(left)


def _channels(node: onnx.NodeProto, weight: onnx.TensorProto | None) -> int | None:
    """Return the number of a Gemm's outputs; None if its matrix is no constant."""
    if weight is None:
        return None
    transposed = any(each.name == "transB" and each.i for each in node.attribute)
    return int(weight.dims[0 if transposed else 1])
