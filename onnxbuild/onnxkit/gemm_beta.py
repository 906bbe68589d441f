"""Gemm's factor of its bias, which ONNX Runtime's QDQ quantizer loses (1.31)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.weights import weight_array

if TYPE_CHECKING:
    import onnx

_BIAS = 2


def fold_beta(model: onnx.ModelProto) -> tuple[str, ...]:
    """Multiply constant biases by their Gemm's beta, in place, and set that to 1.

    The quantizer sets beta to 1 and keeps the bias as it was (operators/gemm.py,
    set_default_beta; base_quantizer.py, quantize_bias_static_impl), so that a model with another
    beta gives wrong numbers without an error.

    Returns: The names of Gemms whose bias is no float32 initializer: they can't be quantized.
    """
    import onnx

    initializers = {
        each.name: each
        for each in model.graph.initializer
        if each.data_type == onnx.TensorProto.FLOAT
    }
    left = []
    for node in model.graph.node:
        beta = next((each for each in node.attribute if each.name == "beta"), None)
        biased = len(node.input) > _BIAS and node.input[_BIAS]
        if node.op_type != "Gemm" or beta is None or beta.f == 1.0 or not biased:
            continue
        bias = initializers.get(node.input[_BIAS])
        if bias is None:
            left.append(node.name)
            continue
        scaled = (weight_array(bias) * beta.f).astype("float32")
        name = f"{node.name}/scaled_bias"
        model.graph.initializer.append(onnx.numpy_helper.from_array(scaled, name))
        node.input[_BIAS] = name
        beta.f = 1.0
    return tuple(left)
