"""Quantize weights to 8 bits; activations are quantized as the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from onnxbuild.core.errors import NotApplicableError
from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.linear_nodes import (
    Constants,
    is_branch,
    linear_nodes,
    products_in_bodies,
)
from onnxbuild.onnxkit.model.model_files import (
    has_external_weights,
    load_model,
    placement,
    save_model,
)
from onnxbuild.onnxkit.model.node_patterns import check_op_types, check_supported, select_nodes
from onnxbuild.onnxkit.model.opsets import DEFAULT_DOMAINS
from onnxbuild.onnxkit.optimize.held_constants import folded_constants
from onnxbuild.onnxkit.optimize.offline_optimization import ToolError, call_tool
from onnxbuild.onnxkit.quantize.common import (
    REDUCE_RANGE_HELP,
    quantized_metrics,
    quantized_nodes,
    refuse_auto,
    refuse_nothing,
)
from onnxbuild.onnxkit.quantize.dynamic_quantizer import fit_to_forms, quantize_weights_alone
from onnxbuild.onnxkit.quantize.eight_bit_forms import DYNAMIC_OPERATORS, NodeFilter, misfit_notes
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import check_loads

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class DynamicOptions:
    """Options of `mode: dynamic`."""

    weight_type: Literal["int8", "uint8"] = option("int8", help="type of the quantized weights")
    per_channel: bool = option(True, help="one scale a channel instead of one a tensor")
    reduce_range: bool | Literal["pairs", "auto"] = option("auto", help=REDUCE_RANGE_HELP)
    op_types: tuple[str, ...] = option(
        (), help="operator types to quantize; empty: all whose 8-bit form computes the same"
    )
    nodes_to_include: tuple[str, ...] = option(
        (), help="the only nodes to quantize, by name or pattern (`*/ffn/*`); empty: all"
    )
    nodes_to_exclude: tuple[str, ...] = option(
        (), help="nodes that stay in fp32, by name or pattern (`*/ffn/*`)"
    )
    keep_most_sensitive: float = option(
        0.0,
        help="share of the nodes that multiply (embeddings don't count) that stay in fp32, the most "
        "sensitive first; needs `fidelity: {data: ...}` to rank them",
        minimum=0,
        maximum=1,
    )
    balance: bool = option(
        False,
        help="first even out the channels of normalized values and take outlier channels of MLPs "
        "out, by `calibration: {data: ...}`: the model computes the same, and 8 bits lose less",
    )
    rounding: Literal["nearest", "gptq"] = option(
        "nearest",
        help="how weights are rounded; gptq: each so that it makes up for the errors of those before it, on "
        "`calibration: {data: ...}`; no cost at run time",
    )


@dataclass(frozen=True, slots=True)
class DynamicParams:
    """Parameters of a quantization; `auto` is resolved before it gets here."""

    options: DynamicOptions


def run(context: StepContext) -> Outcome:
    """Quantize `model`.

    Raises:
        StepError: The options name what is not there.
        NotApplicableError: Nothing can be quantized, or ONNX Runtime's quantizer fails.
    """
    from onnxruntime.quantization.registry import IntegerOpsRegistry

    options: DynamicOptions = context.params.options
    where = context.where
    source, target = context.input("model"), context.output("model")
    refuse_auto("reduce_range", options.reduce_range, where)
    model = load_typed(folded_constants(context), weights="mapped")
    check_supported(options.op_types, IntegerOpsRegistry, option="op_types", where=where)
    gemms = [node.name for node in model.graph.node if node.op_type == "Gemm"]
    wanted = [name for name in options.op_types if not (name == "MatMul" and gemms)]
    check_op_types(wanted, model, option="op_types", where=where)
    included, excluded = (
        _split(select_nodes(getattr(options, name), model, option=name, where=where), gemms)
        for name in ("nodes_to_include", "nodes_to_exclude")
    )
    from onnxbuild.onnxkit.sensitivity.losses import most_sensitive

    kept = most_sensitive(context, options.keep_most_sensitive)
    excluded += _split(kept, gemms)
    excluded += [node.name for node in model.graph.node if is_branch(node.name)]
    excluded += _standard_attention(model)
    convolutions = sum(node.op_type == "Conv" for node in model.graph.node)
    scope = NodeFilter(options.op_types or DYNAMIC_OPERATORS, included, excluded)
    phase("quantizing")
    given = [_take_rounded(context, model, set(excluded), set(included))]
    bodies = products_in_bodies(model)
    del model
    scope, missing_forms = fit_to_forms(given[0], scope, per_channel=options.per_channel)
    try:
        model = call_tool(
            lambda: quantize_weights_alone(
                given.pop(),
                context.scratch,
                op_types=scope.op_types,
                per_channel=options.per_channel,
                reduce_range=options.reduce_range is not False,
                pairs=options.reduce_range == "pairs",
                weight_type=options.weight_type,
                included=scope.included,
                excluded=scope.excluded,
            )
        )
    except ToolError as error:
        raise NotApplicableError(
            f"ONNX Runtime's quantizer fails: {error}",
            where=where,
            fix="leave the node it names in fp32 with `nodes_to_exclude`, or lower `opset`",
        ) from error
    counts = quantized_nodes(model, qdq=False)
    notes = [*misfit_notes(missing_forms)]
    wanted_nodes = "MatMul, Gemm, Conv, Gather, LSTM or Attention with constant weights"
    refuse_nothing(counts, wanted_nodes, where, left=[*notes, *bodies])
    canonicalize(model)
    save_model(model, target, external=placement(source))
    check_loads(target, where)
    if convolutions and "ConvInteger" in counts:
        notes.append(
            f"{counts['ConvInteger']} Conv nodes are quantized dynamically, which runs slower than "
            "fp32 on CPUs; `mode: static` suits convolutions"
        )
    metrics = {**quantized_metrics(counts, source, target), "kept_in_fp32": kept}
    return Outcome(metrics, notes=tuple(notes))


def _take_rounded(
    context: StepContext, model: onnx.ModelProto, excluded: set[str], included: set[str]
) -> onnx.ModelProto:
    """The model, the nodes that will be quantized with the weights that were rounded for that."""
    if "rounded" not in context.input_names:
        return model
    rounded = load_model(context.input("rounded"), weights="mapped")
    constants, source = Constants(model), Constants(rounded)
    found = {each.node.name: each for each in linear_nodes(rounded)}
    for linear in linear_nodes(model):
        name = linear.node.name
        if name not in excluded and (not included or name in included):
            constants.take(linear.node, 1, source.tensor(found[name].weight))
    if not has_external_weights(context.input("model")):
        return model
    save_model(model, context.scratch / "taken")  # all in one file again
    return load_model(context.scratch / "taken", weights="mapped")


def _standard_attention(model: onnx.ModelProto) -> list[str]:
    """ONNX's own Attention nodes: the quantizer goes by the name alone, and takes them for com.microsoft's."""
    return [
        node.name
        for node in all_nodes(model)
        if node.op_type == "Attention" and node.domain in DEFAULT_DOMAINS
    ]


def _split(names: Sequence[str], gemms: Sequence[str]) -> list[str]:
    """The names that the quantizer knows: it splits each Gemm into NAME_MatMul and NAME_Add."""
    return [*names, *(f"{name}_MatMul" for name in gemms if name in names)]


KIND = StepKind(
    name="quantize-dynamic",
    version=8,
    params=DynamicParams,
    inputs=("model", "sensitivity?", "rounded?"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)
