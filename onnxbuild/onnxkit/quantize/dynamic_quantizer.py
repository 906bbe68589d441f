"""ONNX Runtime's dynamic quantizer: the nodes it takes, the forms it needs, and a way through it that copies no weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes
from onnxbuild.onnxkit.model.model_files import (
    load_model,
    map_weights,
    outside_tensors,
    save_model,
    weight_array,
    weights_in_reach,
)
from onnxbuild.onnxkit.model.scopes import (
    GraphScope,
    all_names,
    hide_captures,
    name_maker,
    scopes,
    show_captures,
)
from onnxbuild.onnxkit.quantize.common import part_readers, quant_type
from onnxbuild.onnxkit.quantize.eight_bit_forms import Misfit, NodeFilter, dynamic_misfits
from onnxbuild.onnxkit.saturation.pair_bounded_scales import pair_overrides


def split_gemms(model: onnx.ModelProto) -> None:
    """Replace each Gemm without factors by NAME_MatMul and NAME_Add, in place, nested graphs' included.

    The quantizer does the same first, but transposes the weight of a Gemm with `transB` for all that
    read it (onnx_model.py, replace_gemm_with_matmul: "assume B is not used by any other node"), and
    once more for each Gemm that shares it. Here other readers keep the weight as it is, and all Gemms
    share one transposed copy.

    Args:
        model: Weights inside or mapped. Transposed weights are held in memory.
    """
    splitter = _Splitter(model)
    for scope in scopes(model):
        splitter.split(scope)


class _Splitter:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._make = name_maker(all_names(model))
        self._transposed: dict[tuple[GraphScope, str], str] = {}
        nodes = list(all_nodes(model))
        self._reads = Counter(name for node in nodes for name in node.input)
        self._reads.update(value.name for graph in all_graphs(model) for value in graph.output)
        self._reads_transposed = Counter(
            node.input[1] for node in nodes if _is_plain(node) and _is_transposed(node)
        )

    def split(self, scope: GraphScope) -> None:
        """Replace the Gemms of one graph."""
        graph = scope.graph
        for n in reversed(range(len(graph.node))):
            if _is_plain(graph.node[n]):
                first, *rest = self._parts(scope, graph.node[n])
                graph.node[n].CopyFrom(first)
                for offset, node in enumerate(rest, 1):
                    graph.node.insert(n + offset, node)

    def _parts(self, scope: GraphScope, gemm: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Return equivalent nodes: Transpose if the matrix is no constant, MatMul, Add."""
        from onnx import helper

        value, matrix, bias = (*gemm.input, "")[:3]
        nodes = []
        if _is_transposed(gemm):
            constant = self._transpose(scope, matrix)
            if constant is None:
                constant = self._make(f"{matrix}_Transposed")
                name = f"{gemm.name}_Transpose"
                nodes.append(
                    helper.make_node("Transpose", [matrix], [constant], name, perm=[1, 0])
                )
            matrix = constant
        output = gemm.output[0]
        product = self._make(f"{output}_MatMul") if bias else output
        nodes.append(helper.make_node("MatMul", [value, matrix], [product], f"{gemm.name}_MatMul"))
        if bias:
            nodes.append(helper.make_node("Add", [product, bias], [output], f"{gemm.name}_Add"))
        return nodes

    def _transpose(self, scope: GraphScope, name: str) -> str | None:
        """The name of a constant's transpose, made once; None where the value is no constant."""
        home = scope.home(name)
        tensor = None if home is None else home.initializers.get(name)
        if home is None or tensor is None:
            return None
        if (home, name) not in self._transposed:
            flipped = np.ascontiguousarray(weight_array(tensor).T)
            if self._reads[name] == self._reads_transposed[name]:
                tensor.CopyFrom(onnx.numpy_helper.from_array(flipped, name))
                self._transposed[home, name] = name
            else:
                made = self._make(f"{name}_transposed")
                home.graph.initializer.append(onnx.numpy_helper.from_array(flipped, made))
                self._transposed[home, name] = made
        return self._transposed[home, name]


def _is_plain(node: onnx.NodeProto) -> bool:
    """Return whether a node is a Gemm with factors of 1 and an input that is not transposed."""
    if node.op_type != "Gemm" or node.domain not in ("", "ai.onnx"):
        return False
    flags = {each.name: each for each in node.attribute}
    factors = [flags[name].f for name in ("alpha", "beta") if name in flags]
    return not _flag(flags, "transA") and all(factor == 1 for factor in factors)


def _is_transposed(node: onnx.NodeProto) -> bool:
    return _flag({each.name: each for each in node.attribute}, "transB")


def _flag(flags: dict[str, Any], name: str) -> bool:
    return name in flags and bool(flags[name].i)


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
        per_channel: One scale a channel.
        reduce_range: 7 bits.
        pairs: But for matrices, which keep 8, at scales that bound neighbours together, and
            convolutions, which keep 8 as nothing of theirs saturates.
        weight_type: int8 or uint8.
        included: The only nodes, by name; empty for all.

    Raises:
        Exception: The quantizer met a graph it can't read.
    """
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


_WORDS, _POSITIONS, _SEGMENTS, _POSITION_IDS = 2, 3, 4, 8
_MASK_INDEX, _SUM = 1, 2


def split_embeddings(
    model: onnx.ModelProto, wanted: Callable[[onnx.NodeProto], bool]
) -> dict[str, tuple[str, ...]]:
    """Make Gathers and a SkipLayerNormalization of nodes that are given `position_ids`, in place.

    ONNX Runtime's QEmbedLayerNormalization has no such input (contrib_ops/cpu/quantization/
    qembed_layer_norm.cc counts positions from 0 in each row); a Gather in 8 bits picks the rows that
    it is given. The parts compute the same in fp32. A node stays whole if a table is not constant or
    its mask_index is read.

    Args:
        model: Its weights as initializers.
        wanted: Whether a node may be split.

    Returns: Name of each node that was split -> names of its Gathers. The SkipLayerNormalization
    keeps the node's name.
    """
    constants = {each.name for each in model.graph.initializer}
    read = {name for node in model.graph.node for name in node.input}
    read |= {value.name for value in model.graph.output}
    nodes: list[onnx.NodeProto] = []
    found = {}
    for node in model.graph.node:
        if _is_splittable(node, constants, read) and wanted(node):
            parts = _parts(node)
            found[node.name] = tuple(each.name for each in parts if each.op_type == "Gather")
            nodes += parts
        else:
            nodes.append(node)
    if found:
        made = {name for node in nodes for name in node.output} - {
            name for node in model.graph.node for name in node.output
        }
        graph = onnx.GraphProto()
        graph.CopyFrom(onnx.GraphProto(node=nodes))
        del model.graph.node[:]
        model.graph.node.extend(graph.node)
        model.graph.value_info.extend(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
            for name in sorted(made)
        )
    return found


def _is_splittable(node: onnx.NodeProto, constants: set[str], read: set[str]) -> bool:
    if (node.domain, node.op_type) != ("com.microsoft", "EmbedLayerNormalization"):
        return False
    tables = [name for name in node.input[_WORDS : _SEGMENTS + 1] if name]
    return (
        len(node.input) > _POSITION_IDS
        and bool(node.input[_POSITION_IDS])
        and all(name in constants for name in tables)
        and not (len(node.output) > _MASK_INDEX and node.output[_MASK_INDEX] in read)
    )


def _parts(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    from onnx.helper import make_node

    ids, segment_ids, words, positions, segments, gamma, beta = node.input[:7]
    stem, position_ids = node.name or node.output[0], node.input[_POSITION_IDS]
    picked = [("words", words, ids), ("positions", positions, position_ids)]
    picked += [("segments", segments, segment_ids)] if segments else []
    parts = [
        make_node("Gather", [table, rows], [f"{stem}/{part}"], name=f"{stem}/{part}")
        for part, table, rows in picked
    ]
    skip = f"{stem}/positions"
    if segments:
        added = f"{stem}/positions_and_segments"
        parts.append(make_node("Add", [skip, f"{stem}/segments"], [added], name=added))
        skip = added
    outputs = [node.output[0]]
    if len(node.output) > _SUM and node.output[_SUM]:
        outputs += ["", "", node.output[_SUM]]
    inputs = [f"{stem}/words", skip, gamma, beta]
    last = make_node(
        "SkipLayerNormalization", inputs, outputs, name=node.name, domain="com.microsoft"
    )
    last.attribute.extend(each for each in node.attribute if each.name == "epsilon")
    return [*parts, last]


def fit_to_forms(
    model: onnx.ModelProto, scope: NodeFilter, *, per_channel: bool
) -> tuple[NodeFilter, list[Misfit]]:
    """Leave out the nodes whose 8-bit form computes something else.

    Embeddings of which only the tables have an 8-bit form are split in place, and their tables
    quantized.

    Args:
        model: In fp32, its weights as initializers.
        scope: What was asked for.
        per_channel: Whether each channel of a weight gets a scale.

    Returns: What is left, and the nodes that were asked for and stay in fp32.
    """
    split = split_embeddings(model, lambda node: scope.takes(node.name, node.op_type))
    tables = [name for names in split.values() for name in names]
    if scope.included:
        scope = replace(scope, included=[*scope.included, *tables])
    if split and "Gather" not in scope.op_types:
        gathers = [node.name for node in model.graph.node if node.op_type == "Gather"]
        others = [name for name in gathers if name not in tables]
        scope = replace(
            scope, op_types=[*scope.op_types, "Gather"], excluded=[*scope.excluded, *others]
        )
    found = dynamic_misfits(model, per_channel=per_channel)
    misfits = [each for each in found if scope.takes(each.name, each.op_type)]
    excluded = [*scope.excluded, *(each.name for each in misfits)]
    return replace(scope, excluded=excluded), misfits
