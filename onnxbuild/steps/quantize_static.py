"""Quantize weights and activations with calibrated ranges, as QDQ pairs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.errors import NotApplicableError
from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.calibrate.ranges import RANGES_FILE
from onnxbuild.onnxkit.calibrate.thresholds import IntegerGrid
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.linear_nodes import is_branch, products_in_bodies
from onnxbuild.onnxkit.model.model_files import placement, save_model
from onnxbuild.onnxkit.model.node_patterns import check_op_types, check_supported, select_nodes
from onnxbuild.onnxkit.optimize.offline_optimization import ToolError, call_tool
from onnxbuild.onnxkit.quantize.common import (
    REDUCE_RANGE_HELP,
    part_readers,
    quant_type,
    quantized_metrics,
    quantized_nodes,
    refuse_auto,
    refuse_nothing,
)
from onnxbuild.onnxkit.quantize.eight_bit_forms import (
    STATIC_OPERATORS,
    NodeFilter,
    misfit_notes,
    static_misfits,
)
from onnxbuild.onnxkit.quantize.separate_parts import find_separate_parts, keep_in_fp32
from onnxbuild.onnxkit.quantize.static_quantizer import (
    fold_beta,
    quantize_with_ranges,
    static_overrides,
)
from onnxbuild.onnxkit.saturation.pair_bounded_scales import pair_overrides
from onnxbuild.onnxkit.saturation.saturation import saturating_nodes, saturation_notes
from onnxbuild.onnxkit.sensitivity.static_rounding import StaticScheme
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import check_loads

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")

_KERNEL_BITS = 8
"""Bits of the activations that integer kernels take; wider ones are multiplied in fp32."""

MEANS_FILE = "means.json"


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """Options of `mode: static`."""

    weight_type: Literal["int8", "uint8"] = option("int8", help="type of the quantized weights")
    activation_type: Literal["uint8", "int8", "uint16", "int16", "auto"] = option(
        "auto",
        help="type of the quantized activations; auto: uint8 on x86, int8 on ARM; 16 bits keep "
        "more and run slower",
    )
    symmetric: bool | Literal["auto"] = option(
        "auto", help="activations with zero in the middle of their grid; auto: for signed types"
    )
    per_channel: bool = option(True, help="one scale a channel instead of one a tensor")
    reduce_range: bool | Literal["pairs", "auto"] = option("auto", help=REDUCE_RANGE_HELP)
    bias_correction: bool = option(
        False,
        help="take back what rounded weights add to a node's mean output over the calibration "
        "data",
    )
    op_types: tuple[str, ...] = option(
        (), help="operator types to quantize; empty: all whose 8-bit form computes the same"
    )
    only_products: bool = option(
        False,
        help="quantize only Conv, ConvTranspose, Gemm and MatMul, which have nearly all of the weights "
        "and of the time; all else stays in fp32",
    )
    nodes_to_include: tuple[str, ...] = option(
        (), help="the only nodes to quantize, by name or pattern (`*/ffn/*`); empty: all"
    )
    nodes_to_exclude: tuple[str, ...] = option(
        (), help="nodes that stay in fp32, by name or pattern (`*/ffn/*`)"
    )
    keep_most_sensitive: float = option(
        0.0,
        help="share of the nodes that compute (Conv, MatMul, Add, Softmax, ...) that stay in fp32, "
        "the most sensitive to their calibrated ranges first; needs `fidelity: {data: ...}` to "
        "rank them",
        minimum=0,
        maximum=1,
    )
    calibration_method: Literal[
        "auto", "minmax", "moving_average", "percentile", "entropy", "mse"
    ] = option("auto", help="how ranges are drawn; auto: as `calibration.method` says")
    balance: bool = option(
        False,
        help="first even out the channels of normalized values and take outlier channels of MLPs "
        "out, over the calibration data: the model computes the same, and 8 bits lose less",
    )


def scheme_of(options: StaticOptions) -> StaticScheme:
    """Return the grids that nodes are rounded to, for their sensitivity.

    Args:
        options: Of a variant, nothing left at `auto` but `symmetric`.
    """
    return StaticScheme(
        weight_type=options.weight_type,
        activation_type=options.activation_type,
        symmetric=_is_symmetric(options),
        per_channel=options.per_channel,
        reduce_range=options.reduce_range is not False,
        pairs=options.reduce_range == "pairs",
        op_types=_op_types(options) if options.only_products else options.op_types,
    )


def _op_types(options: StaticOptions) -> tuple[str, ...]:
    types = options.op_types or STATIC_OPERATORS
    return tuple(each for each in types if each in _PRODUCTS or not options.only_products)


def grid_for(options: StaticOptions, method: str) -> IntegerGrid:
    """Return the grid that a calibration aims at; the same for all where its method does not go by it.

    Args:
        options: Of a variant, `activation_type` decided.
    """
    if method in {"minmax", "moving_average"}:
        return IntegerGrid()
    return IntegerGrid(_bits(options), symmetric=_is_symmetric(options))


def _bits(options: StaticOptions) -> int:
    return 16 if options.activation_type in {"uint16", "int16"} else 8


def _is_symmetric(options: StaticOptions) -> bool:
    if options.symmetric == "auto":
        return options.activation_type in {"int8", "int16"}
    return options.symmetric


@dataclass(frozen=True, slots=True)
class StaticParams:
    """Parameters of a quantization; `auto` is resolved before it gets here.

    Attributes:
        sums_saturate: The target's CPU adds 8-bit products in 16 bits.
    """

    options: StaticOptions
    sums_saturate: bool = False


def run(context: StepContext) -> Outcome:
    """Quantize `model` with the ranges of `calibration`.

    Nodes that touch a value without a usable range (an attention mask's infinities) stay in fp32, and so do values
    near the outputs that hold parts of unlike ranges (see `find_separate_parts`).

    Raises:
        StepError: The options name what is not there.
        NotApplicableError: Nothing can be quantized, or ONNX Runtime's quantizer fails.
    """
    options: StaticOptions = context.params.options
    where = context.where
    source, target = context.input("model"), context.output("model")
    refuse_auto("reduce_range", options.reduce_range, where)
    refuse_auto("activation_type", options.activation_type, where)
    model = load_typed(source, weights="mapped")
    misread = fold_beta(model)
    check_supported(options.op_types, _supported(), option="op_types", where=where)
    check_op_types(options.op_types, model, option="op_types", where=where)
    included, left_out = (
        select_nodes(getattr(options, name), model, option=name, where=where)
        for name in ("nodes_to_include", "nodes_to_exclude")
    )
    phase("quantizing")
    calibration = json.loads((context.input("calibration") / RANGES_FILE).read_text("utf-8"))
    unbounded = set(calibration["unbounded"])
    masked = [n.name for n in model.graph.node if unbounded & {*n.input, *n.output}]
    from onnxbuild.onnxkit.sensitivity.losses import most_sensitive

    kept = most_sensitive(context, options.keep_most_sensitive)
    branches = [node.name for node in model.graph.node if is_branch(node.name)]
    types = _op_types(options)
    misfits = static_misfits(model)
    asked = NodeFilter(types, included, [*left_out, *masked, *misread, *kept, *branches])
    misfits = [each for each in misfits if asked.takes(each.name, each.op_type)]
    separate = find_separate_parts(
        model,
        calibration["ranges"],
        calibration["narrowest"],
        bits=_bits(options),
        symmetric=_is_symmetric(options),
    )
    excluded = sorted({*asked.excluded, *(each.name for each in misfits), *separate.nodes})
    given = saturating_nodes(model)
    part_readers(model, per_channel=options.per_channel, kept=excluded)
    notes = [*misfit_notes(misfits), *separate.notes(model.graph)]

    nodes = NodeFilter(types, included, excluded)
    model, corrected = _quantized(context, model, calibration["ranges"], nodes, separate.values)
    if options.bias_correction:
        notes.append(f"the biases of {corrected} nodes are corrected")
    counts = quantized_nodes(model, qdq=True, takes=nodes.takes)
    wanted = "Conv, Gemm, MatMul or another operator with calibrated inputs"
    refuse_nothing(counts, wanted, where, left=[*notes, *products_in_bodies(model)])
    sums_saturate = context.params.sums_saturate and _bits(options) == _KERNEL_BITS
    doubts = saturation_notes(saturating_nodes(model), given) if sums_saturate else []
    canonicalize(model)
    save_model(model, target, external=placement(source))
    check_loads(target, where)
    if masked:
        notes.append(
            f"{len(masked)} nodes stay in fp32, their values are masks without a usable range"
        )
    metrics = {**quantized_metrics(counts, source, target), "kept_in_fp32": kept}
    return Outcome(metrics, notes=(*notes, *doubts))


def _quantized(
    context: StepContext,
    model: onnx.ModelProto,
    ranges: Mapping[str, tuple[float, float]],
    nodes: NodeFilter,
    in_fp32: Collection[str],
) -> tuple[onnx.ModelProto, int]:
    """Return the quantized model, and the number of nodes whose biases are corrected.

    Args:
        model: As it was read, and prepared; is used up.
        ranges: Value name -> its calibrated range.
        in_fp32: Values that stay in fp32.

    Raises:
        NotApplicableError: ONNX Runtime's quantizer fails.
    """
    from onnxbuild.onnxkit.quantize.bias_correction import correct_biases

    options: StaticOptions = context.params.options

    def quantize(given: onnx.ModelProto) -> onnx.ModelProto:
        made = _quantize(given, options, ranges, nodes.included, nodes.excluded)
        keep_in_fp32(made, in_fp32)
        return made

    try:
        found = call_tool(lambda: quantize(model))
        if not options.bias_correction:
            return found, 0
        phase("correcting biases")
        again = load_typed(context.input("model"), weights="mapped")
        fold_beta(again)
        part_readers(again, per_channel=options.per_channel, kept=nodes.excluded)
        corrected = correct_biases(again, found, _means(context))
        return call_tool(lambda: quantize(again)), len(corrected)
    except ToolError as error:
        raise NotApplicableError(
            f"ONNX Runtime's quantizer fails: {error}",
            where=context.where,
            fix="leave the node it names in fp32 with `nodes_to_exclude`",
        ) from error


def _means(context: StepContext) -> dict[str, np.ndarray]:
    """Return the means that calibration measured: value name -> the mean of each channel."""
    found = json.loads((context.input("calibration") / MEANS_FILE).read_text("utf-8"))
    return {name: np.array(means, np.float64) for name, means in found.items()}


def _supported() -> list[str]:
    """The operator types that ONNX Runtime can quantize, sorted."""
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    return sorted({*QDQRegistry, *QLinearOpsRegistry})


def _quantize(
    model: onnx.ModelProto,
    options: StaticOptions,
    ranges: Mapping[str, tuple[float, float]],
    included: Sequence[str],
    excluded: Sequence[str],
) -> onnx.ModelProto:
    weights = quant_type(options.weight_type)
    overrides = static_overrides(
        model, ranges, weights, per_channel=options.per_channel, bits=_bits(options)
    )
    if options.reduce_range == "pairs":
        overrides |= pair_overrides(model, per_channel=options.per_channel, dynamic=False)
    return quantize_with_ranges(
        model,
        ranges,
        weight_type=weights,
        activation_type=quant_type(options.activation_type),
        symmetric=_is_symmetric(options),
        per_channel=options.per_channel,
        reduce_range=options.reduce_range is not False,
        op_types=_op_types(options),
        included=included,
        excluded=excluded,
        overrides=overrides,
    )


KIND = StepKind(
    name="quantize-static",
    version=12,
    params=StaticParams,
    inputs=("model", "calibration", "sensitivity?"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)
