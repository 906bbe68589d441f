"""Convert a model's weights and arithmetic to 16-bit floats."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.errors import NotApplicableError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import OPSET_MAX
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.fp16.casts import FLOAT, FLOAT16
from onnxbuild.onnxkit.fp16.float16 import (
    convert,
    lift_constants,
    make_constant_outputs,
    readers_of_large_constants,
)
from onnxbuild.onnxkit.fp16.fp32_nodes import batch_transposes, nodes_beyond
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import all_nodes, initializers, opset_of
from onnxbuild.onnxkit.model.model_files import file_bytes, placement, save_model
from onnxbuild.onnxkit.model.node_patterns import check_op_types, select_nodes
from onnxbuild.onnxkit.model.opsets import custom_nodes, has_half_form, without_half_form
from onnxbuild.onnxkit.optimize.offline_optimization import ToolError, call_tool
from onnxbuild.onnxkit.sessions.custom_operators import adopted_libraries
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import check_loads

_AUTO_LIMIT = 512.0
"""Magnitude for `keep_fp32: auto`: the default `data_max` of AutoCast, in NVIDIA's Model Optimizer."""

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Fp16Options:
    """Options of `mode: fp16`."""

    keep_io_types: bool = option(True, help="keep float32 inputs and outputs")
    op_block_list: tuple[str, ...] = option((), help="operator types that stay in fp32")
    node_block_list: tuple[str, ...] = option(
        (), help="nodes that stay in fp32, by name or pattern (`*/ffn/*`)"
    )
    keep_fp32: Literal["none", "auto"] | float = option(
        "none",
        help="also keep nodes in fp32 whose inputs or outputs exceed this magnitude on the "
        "`reference` points; auto: 512",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class Fp16Params:
    """Parameters of a conversion."""

    options: Fp16Options


def run(context: StepContext) -> Outcome:
    """Convert `model`; where its constants exceed fp16's range, the nodes that read them stay.

    With `keep_fp32` it is run on the reference's inputs, and what is too large there stays too.

    Raises:
        StepError: The options name what is not there.
        NotApplicableError: The model has no fp32 weights, nothing is left to convert, or ONNX Runtime's
            converter fails.
    """
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST

    options: Fp16Options = context.params.options
    where = context.where
    source, target = context.input("model"), context.output("model")
    large = _large(context)
    model = load_typed(source)
    opset = opset_of(model)
    check_op_types(options.op_block_list, model, option="op_block_list", where=where)
    blocked = select_nodes(options.node_block_list, model, option="node_block_list", where=where)
    phase("converting to fp16")
    lift_constants(model)
    make_constant_outputs(model)
    if not any(tensor.data_type == FLOAT for tensor in initializers(model)):
        raise NotApplicableError(
            "the model has no fp32 weights, so there is nothing to convert to fp16",
            where=where,
            fix="take this variant out of `quantization`",
        )
    kept = readers_of_large_constants(model)
    custom = custom_nodes(model) if adopted_libraries() else ()
    stays = {*DEFAULT_OP_BLOCK_LIST, *options.op_block_list}
    fp32_only = {
        name: operator
        for name, operator in without_half_form(model).items()
        if operator not in stays and name not in blocked
    }
    turned = batch_transposes(model)
    functions = {(each.domain, each.name) for each in model.functions}
    calls = [node.name for node in all_nodes(model) if (node.domain, node.op_type) in functions]
    try:
        model = call_tool(
            lambda: convert(
                model,
                keep_io_types=options.keep_io_types,
                op_types=options.op_block_list,
                nodes=(*blocked, *kept, *large, *custom, *calls, *fp32_only, *turned),
            )
        )
    except ToolError as error:
        raise NotApplicableError(
            f"ONNX Runtime's fp16 converter fails: {error}",
            where=where,
            fix="keep the operator it names in fp32 with `op_block_list`",
        ) from error
    canonicalize(model)
    counts = Counter(tensor.data_type for tensor in initializers(model))
    if large and not counts[FLOAT16]:
        raise NotApplicableError(
            f"no weight is left for fp16: {len(large)} nodes work on values beyond {_limit(options)}",
            where=where,
            fix="write a greater `keep_fp32`, up to 65504, or take this variant out of "
            "`quantization`",
        )
    if fp32_only and not counts[FLOAT16]:
        raise NotApplicableError(
            f"no weight is left for fp16: {_operators(fp32_only)} have no fp16 form at opset {opset}",
            where=where,
            fix=_later(fp32_only, opset) or "take this variant out of `quantization`",
        )
    save_model(model, target, external=placement(source))
    check_loads(target, where)
    notes = []
    if kept:
        notes.append(f"kept in fp32, their constants exceed 65504: {', '.join(kept)}")
    if custom:
        notes.append(f"kept in fp32, their operators are of a library: {_listed(custom)}")
    if turned:
        notes.append(
            f"kept in fp32, ONNX Runtime would crash on their fp16 form: {_listed(turned)}"
        )
    if calls:
        notes.append(f"kept in fp32, they call functions of the model: {_listed(calls)}")
    if fp32_only:
        said = f"kept in fp32, ONNX has no fp16 form of them at opset {opset}: {_operators(fp32_only)}"
        later = _later(fp32_only, opset)
        notes.append(f"{said}; {later}" if later else said)
    if large:
        notes.append(f"kept in fp32, their values exceed {_limit(options):g}: {_listed(large)}")
    return Outcome(
        metrics={
            "fp16_weights": counts[FLOAT16],
            "fp32_weights": counts[FLOAT],
            "fp32_nodes_kept": len(large),
            "size_bytes": file_bytes(target),
            "size_ratio": round(file_bytes(target) / file_bytes(source), 4),
        },
        notes=tuple(notes),
    )


def _large(context: StepContext) -> tuple[str, ...]:
    """The nodes whose values exceed `keep_fp32` on the reference's inputs."""
    options: Fp16Options = context.params.options
    if options.keep_fp32 == "none":
        return ()
    return nodes_beyond(
        context.input("model"),
        (point.feeds for point in read_reference(context.input("reference"))),
        _limit(options),
        scratch=context.scratch,
        where=context.where,
    )


def _operators(nodes: Mapping[str, str]) -> str:
    counts = sorted(Counter(nodes.values()).items())
    return " and ".join(f"{count} {operator}" for operator, count in counts)


def _later(nodes: Mapping[str, str], opset: int) -> str:
    """Name the opset that has fp16 forms of all of them; empty if none has."""
    later = range(opset + 1, OPSET_MAX + 1)
    found = next((n for n in later if all(has_half_form(each, n) for each in nodes.values())), 0)
    return f"write `opset: {found}`, which has one" if found else ""


def _limit(options: Fp16Options) -> float:
    return _AUTO_LIMIT if isinstance(options.keep_fp32, str) else options.keep_fp32


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


KIND = StepKind(
    name="convert-fp16",
    version=5,
    params=Fp16Params,
    inputs=("model", "reference?"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)
