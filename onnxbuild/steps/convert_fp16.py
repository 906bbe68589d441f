"""Convert a model's weights and arithmetic to 16-bit floats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.canonical import canonicalize
from onnxbuild.onnxkit.float16 import (
    FLOAT,
    FLOAT16,
    convert,
    lift_constants,
    readers_of_large_constants,
)
from onnxbuild.onnxkit.foreign import ToolError, call_tool
from onnxbuild.onnxkit.model_files import file_bytes, save_model
from onnxbuild.onnxkit.selection import check_nodes, check_op_types
from onnxbuild.onnxkit.sessions import open_session
from onnxbuild.onnxkit.value_types import load_typed


@dataclass(frozen=True, slots=True)
class Fp16Options:
    """What becomes fp16."""

    keep_io_types: bool = option(True, help="keep float32 inputs and outputs")
    op_block_list: tuple[str, ...] = option((), help="operator types that stay in fp32")
    node_block_list: tuple[str, ...] = option((), help="nodes that stay in fp32, by name")


@dataclass(frozen=True, slots=True)
class Fp16Params:
    """All that steers a conversion."""

    options: Fp16Options


def run(context: StepContext) -> Outcome:
    """Convert `model`; where its constants exceed fp16's range, the nodes that read them stay.

    Raises:
        StepError: The options name what is not there, the model has no fp32 weights, or ONNX
            Runtime does not load the result.
    """
    options: Fp16Options = context.params.options
    where = context.where
    source, target = context.input("model"), context.output("model")
    model = load_typed(source)
    check_op_types(options.op_block_list, model, option="op_block_list", where=where)
    check_nodes(options.node_block_list, model, option="node_block_list", where=where)
    lift_constants(model)
    if not any(tensor.data_type == FLOAT for tensor in model.graph.initializer):
        raise StepError(
            "the model has no fp32 weights, so there is nothing to convert to fp16",
            where=where,
            fix="take this variant out of `quantization`",
        )
    kept = readers_of_large_constants(model)
    try:
        model = call_tool(
            lambda: convert(
                model,
                keep_io_types=options.keep_io_types,
                op_types=options.op_block_list,
                nodes=(*options.node_block_list, *kept),
            )
        )
    except ToolError as error:
        raise StepError(
            f"ONNX Runtime's fp16 converter fails: {error}",
            where=where,
            fix="keep the operator it names in fp32 with `op_block_list`",
        ) from error
    canonicalize(model)
    counts = Counter(tensor.data_type for tensor in model.graph.initializer)
    save_model(model, target)
    open_session(target, where=where)
    notes = [f"kept in fp32, their constants exceed 65504: {', '.join(kept)}"] if kept else []
    return Outcome(
        metrics={
            "fp16_weights": counts[FLOAT16],
            "fp32_weights": counts[FLOAT],
            "size_bytes": file_bytes(target),
            "size_ratio": round(file_bytes(target) / file_bytes(source), 4),
        },
        notes=tuple(notes),
    )


KIND = StepKind(
    name="convert-fp16",
    version=1,
    params=Fp16Params,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
    options=Fp16Options,
)
