"""ONNX Runtime's dynamic quantizer, and a way through it that copies no weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.model.captures import hide_captures, show_captures
from onnxbuild.onnxkit.model.external_data import map_weights, outside_tensors, weights_in_reach
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.quantize.common import quant_type
from onnxbuild.onnxkit.quantize.gemms import split_gemms
from onnxbuild.onnxkit.quantize.tied_embeddings import part_readers
from onnxbuild.onnxkit.saturation.ort_overrides import pair_overrides

if TYPE_CHECKING:
    import onnx

_MATRIX, _ZERO_POINT = 2, 3
"""Rank of a matrix; place of the weight's zero point among MatMulInteger's inputs."""

_RECURRENT_WEIGHTS = (1, 2, 9, 11)
"""Places among DynamicQuantizeLSTM's inputs of W and R and of their zero points."""

_UNSIGNED_ZERO = 128
"""Offset of uint8 codes from int8 codes."""


def quantize_weights_alone(
    model: onnx.ModelProto,
    scratch: Path,
    *,
    op_types: Sequence[str],
    per_channel: bool,
    reduce_range: bool,
    pairs: bool,
    weight_type: str,
    included: Sequence[str],
    excluded: Sequence[str],
) -> onnx.ModelProto:
    """Quantize weights to 8 bits, and let activations be quantized as the model runs.

    Args:
        model: Every value typed, weights inside or mapped; is used up.
        scratch: A folder to work in.
        op_types: Operator types.
        per_channel: One scale a channel.
        reduce_range: 7 bits.
        pairs: But for matrices, which keep 8, at scales that bound neighbours together, and
            convolutions, which keep 8 as nothing of theirs saturates.
        weight_type: int8 or uint8.
        included: The only nodes, by name; empty for all.
        excluded: Nodes that stay.

    Raises:
        Exception: The quantizer met a graph it can't read.
    """
    import onnx
    from onnxruntime.quantization import quantize_dynamic

    split_gemms(model)
    part_readers(model, per_channel=per_channel)
    shown = show_captures(model)
    overrides: dict[str, Any] = {}
    if pairs:
        overrides = pair_overrides(model, per_channel=per_channel, dynamic=True)
    settings: dict[str, Any] = {
        "op_types_to_quantize": list(op_types),
        "nodes_to_quantize": list(included),
        "nodes_to_exclude": list(excluded),
        "extra_options": {
            "DefaultTensorType": onnx.TensorProto.FLOAT,
            "MatMulConstBOnly": True,
            "TensorQuantOverrides": overrides,
        },
        "per_channel": per_channel,
        "reduce_range": reduce_range,
    }
    if any(True for _ in outside_tensors(model)):
        return _settled(_in_place(model, weight_type, **settings), shown, weight_type)
    typed, quantized = scratch / "typed", scratch / "quantized"
    save_model(model, typed)
    del model  # the quantizer reads it anew
    quantized.mkdir()
    quantize_dynamic(
        typed / MODEL_FILE, quantized / MODEL_FILE, weight_type=quant_type(weight_type), **settings
    )
    return _settled(load_model(quantized), shown, weight_type)


def _settled(
    model: onnx.ModelProto, shown: Mapping[str, str], weight_type: str
) -> onnx.ModelProto:
    """The quantizer's model, with what was changed for it taken back and what it gets wrong mended."""
    hide_captures(model, shown)
    _match_zero_points(model)
    if weight_type == "uint8":
        _unsign_recurrent(model)
    return model


def _unsign_recurrent(model: onnx.ModelProto) -> None:
    """Move the weights of quantized LSTM nodes from int8 to uint8, in place: the same values.

    The quantizer makes them int8 whatever type is asked for, and on x86 CPUs without VNNI their
    sums saturate, which unsigned weights are chosen to prevent.
    """
    import numpy as np
    import onnx

    constants = {each.name: each for each in model.graph.initializer}
    names = {
        node.input[place]
        for node in model.graph.node
        if node.op_type == "DynamicQuantizeLSTM"
        for place in _RECURRENT_WEIGHTS
    }
    for name in sorted(names & constants.keys()):
        tensor = constants[name]
        if tensor.data_type == onnx.TensorProto.INT8:
            moved = onnx.numpy_helper.to_array(tensor).astype(np.int16) + _UNSIGNED_ZERO
            tensor.CopyFrom(onnx.numpy_helper.from_array(moved.astype(np.uint8), name))


def _match_zero_points(model: onnx.ModelProto) -> None:
    """Give stacks of matrices zero points of the shape that MatMulInteger asks for, in place.

    For a weight of shape (*stack, rows, columns) that is (*stack, 1, columns); the quantizer writes
    (columns,), which ONNX Runtime refuses when the model runs.
    """
    import numpy as np
    import onnx

    constants = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "MatMulInteger" or len(node.input) <= _ZERO_POINT:
            continue
        weight, zeros = (constants.get(node.input[place]) for place in (1, _ZERO_POINT))
        if weight is None or zeros is None or len(weight.dims) <= _MATRIX or len(zeros.dims) != 1:
            continue
        shape = (*weight.dims[:-2], 1, weight.dims[-1])
        array = np.broadcast_to(onnx.numpy_helper.to_array(zeros), shape)
        zeros.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(array), zeros.name))


def _in_place(
    model: onnx.ModelProto, weight_type: str, *, op_types_to_quantize: list[str], **settings: Any
) -> onnx.ModelProto:
    """Quantize as quantize_dynamic does, but leave weights in their files until their turn.

    quantize_dynamic reads all weights, copies them, writes the copy and reads it again, to learn
    the types of values; memory is more than three times the model. Here each weight is read as its
    turn comes: a quantizer in static mode skips that copy, and nothing else looks at the mode
    before `quantize_model`.
    """
    import onnx
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer
    from onnxruntime.quantization.quant_utils import QuantizationMode, add_infer_metadata

    with weights_in_reach(model) as folder:
        assert folder is not None
        typed = onnx.shape_inference.infer_shapes(model)
        del model
        add_infer_metadata(typed)
        quantizer: Any = ONNXQuantizer(
            model=typed,
            mode=QuantizationMode.IntegerOps,
            static=True,
            weight_qType=quant_type(weight_type),
            activation_qType=QuantType.QUInt8,
            tensors_range=None,
            op_types_to_quantize=op_types_to_quantize,
            **settings,
        )
        quantizer.static = False
        quantizer.quantize_model()
        quantizer.model.topological_sort()
        quantized: onnx.ModelProto = quantizer.model.model
        map_weights(quantized, folder)
    return quantized
