"""ONNX Runtime's QDQ quantizer from behind its calibration on, with what it gets wrong mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.calibrate.ranges import tensors_data
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.model.model_files import map_weights, weight_array, weights_in_reach
from onnxbuild.onnxkit.model.scopes import hide_captures, show_captures

_SCALE_PER_CHANNEL_FROM = 13
"""The opset since which ONNX's DequantizeLinear has an axis; com.microsoft's always had one."""


def quantize_with_ranges(
    model: onnx.ModelProto,
    ranges: Mapping[str, tuple[float, float]],
    *,
    weight_type: Any,
    activation_type: Any,
    symmetric: bool,
    per_channel: bool,
    reduce_range: bool,
    op_types: Sequence[str],
    included: Sequence[str],
    excluded: Sequence[str],
    overrides: Mapping[str, Any],
) -> onnx.ModelProto:
    """Put QDQ pairs around activations, and weights behind DequantizeLinear.

    Args:
        model: Every value typed, weights inside or mapped; is used up.
        ranges: Value name -> [least, greatest].
        activation_type: The same of activations.
        symmetric: Activations have zero in the middle of their grid.
        per_channel: One scale a channel.
        reduce_range: 7 bits a weight.
        included: The only nodes, by name; empty for all.
        excluded: Nodes that stay in fp32.
        overrides: `TensorQuantOverrides`, see `pair_overrides`.

    Raises:
        Exception: The quantizer met a graph it can't read.
    """
    from onnxruntime.quantization.quant_utils import add_infer_metadata
    from onnxruntime.quantization.quantize import update_opset_version

    shown = show_captures(model)
    with weights_in_reach(model) as folder:
        if folder is not None:  # else all weights are copied, written and read, only for shapes
            add_infer_metadata(model)
        quantizer = _quantizer_class()(
            update_opset_version(model, weight_type),
            per_channel,
            reduce_range,
            weight_type,
            activation_type,
            tensors_data(ranges),
            list(included),
            list(excluded),
            list(op_types),
            {
                "ActivationSymmetric": symmetric,
                "TensorQuantOverrides": dict(overrides),
                "UseQDQContribOps": per_channel and opset_of(model) < _SCALE_PER_CHANNEL_FROM,
            },
        )
        quantizer.quantize_model()
        quantized: onnx.ModelProto = quantizer.model.model
        if folder is not None:
            map_weights(quantized, folder)
    hide_captures(quantized, shown)
    return quantized


def _quantizer_class() -> Any:
    """The QDQ quantizer, with a scale for each bias of a grouped ConvTranspose, and biases that fit.

    The scale of a bias is its input's times its weight's, and a bias far above small weights (a channel that a
    batch normalization shut off) exceeds 32 bits at that. The quantizer enlarges the scales of such weights,
    but of signed ones alone (qdq_quantizer.py, _adjust_weight_quant_params_for_bias_tensors).

    The weights of a grouped ConvTranspose are (inputs, outputs of one group, ...), so a scale along their axis
    of outputs is shared by the groups. The quantizer multiplies the scales of a bias with those, one to one,
    and fails (base_quantizer.py, quantize_bias_static_impl).
    """
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    class GroupedBiasQuantizer(QDQQuantizer):  # type: ignore[misc]
        def quantize_bias_static_impl(
            self, bias_name: str, input_scale: np.ndarray, weight_scale: np.ndarray, beta: float
        ) -> Any:
            biases = self.model.get_initializer(bias_name)
            if _are_grouped(biases, weight_scale):
                weight_scale = np.tile(weight_scale, biases.dims[0] // weight_scale.size)
            return super().quantize_bias_static_impl(bias_name, input_scale, weight_scale, beta)

        def _adjust_weight_quant_params_for_bias_tensors(self) -> None:
            """Enlarge the scales of unsigned weights, too; their zero points stay where they are."""
            super()._adjust_weight_quant_params_for_bias_tensors()
            for bias_name, bias in self.bias_to_quantize.items():
                params = self.initializer_quant_params.get(bias.weight_name)
                known = bias.input_name in self.quantization_params
                if params is None or not known or params["quant_type"] != onnx.TensorProto.UINT8:
                    continue
                source = self.quantization_params[bias.input_name].get_for_consumer(bias.node_name)
                _, scale = self._adjust_weight_scale_for_int32_bias(
                    np.asarray(source["scale"], np.float32),
                    params["scale"],
                    bias.weight_name,
                    self.model.get_initializer(bias_name),
                    params.get("axis") is not None,
                )
                if scale is not None:
                    params["scale"] = scale

        def _adjust_weight_scale_for_int32_bias(
            self,
            input_scale: np.ndarray,
            weight_scale: np.ndarray,
            weight_name: str,
            bias_tp: onnx.TensorProto,
            is_per_channel: bool,  # noqa: FBT001 - as it is called
        ) -> Any:
            """Go by the greatest bias that shares a scale, not by the first group's."""
            if is_per_channel and _are_grouped(bias_tp, weight_scale):
                biases = onnx.numpy_helper.to_array(bias_tp).reshape(-1, weight_scale.size)
                bias_tp = onnx.numpy_helper.from_array(np.abs(biases).max(axis=0), bias_tp.name)
            return super()._adjust_weight_scale_for_int32_bias(
                input_scale, weight_scale, weight_name, bias_tp, is_per_channel
            )

    return GroupedBiasQuantizer


def _are_grouped(biases: onnx.TensorProto, weight_scale: np.ndarray) -> bool:
    """Return whether several biases of a vector share each of the scales."""
    count = biases.dims[0] if len(biases.dims) == 1 else 0
    one_a_channel = weight_scale.ndim == 1
    return one_a_channel and count > weight_scale.size and count % weight_scale.size == 0


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
    """
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
