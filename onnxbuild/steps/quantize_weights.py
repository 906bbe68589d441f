"""Keep weights in 4 or 8 bits, block by block; activations stay in fp32."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import load_model, placement, save_model
from onnxbuild.onnxkit.model.node_patterns import select_nodes
from onnxbuild.onnxkit.optimize.held_constants import folded_constants
from onnxbuild.onnxkit.quantize.common import quantized_metrics, refuse_nothing
from onnxbuild.onnxkit.quantize.eight_bit_forms import Misfit, misfit_notes
from onnxbuild.onnxkit.quantize.gptq import read_factors
from onnxbuild.onnxkit.sessions.open import check_loads

if TYPE_CHECKING:
    from onnxbuild.onnxkit.model.scopes import GraphScope
    from onnxbuild.onnxkit.quantize.blockwise import Blocks
    from onnxbuild.onnxkit.quantize.weight_only import Weighted

_HALF_BYTE, _BYTE = 4, 8

_ODD = (
    "its rows have an odd number of elements, and GatherBlockQuantized finds an even one in 4 bits"
)


@dataclass(frozen=True, slots=True)
class WeightOptions:
    """Options of `mode: weight_only`."""

    bits: Literal[4, 8] = option(4, help="bits a weight")
    block_size: Literal[16, 32, 64, 128, 256] = option(
        32, help="weights that share a scale; fewer are nearer to fp32 and take more space"
    )
    symmetric: bool = option(False, help="scales alone, without zero points")
    method: Literal["rtn", "hqq", "gptq"] = option(
        "rtn",
        help="how weights are rounded; rtn: to the nearest; gptq: so that errors on the data of "
        "`calibration` make up for each other; hqq: half-quadratic, with fractional zero points, "
        "whose fractions are a few more columns; among these, nodes in 8 bits are rounded to the nearest",
    )
    scales: Literal["range", "search"] = option(
        "range",
        help="how a block's scale and zero point are found; range: to cover all its values; search: those of least error, "
        "as k-quants do it, for `method: rtn` and `gptq`; no cost at run time",
        sparse=True,
    )
    scales_dtype: Literal["float32", "float16"] = option(
        "float32",
        help="type that scales are stored in; float16: half their space, a tenth of a model's in 4 bits; ONNX Runtime "
        "makes them float32 as it loads, so that speed and memory stay",
        sparse=True,
    )
    accuracy_level: Literal[0, 1, 2, 3, 4] = option(
        4,
        help="what CPUs multiply in; 4: int8 activations, quantized block by block as the model "
        "runs (the fastest kernels); 0 and 1: fp32, 2: fp16, 3: bf16",
    )
    op_types: tuple[Literal["MatMul", "Gemm", "Gather"], ...] = option(
        ("MatMul", "Gemm"), help="operator types whose constant weights are quantized"
    )
    nodes_to_include: tuple[str, ...] = option(
        (), help="the only nodes to quantize, by name or pattern (`*/ffn/*`); empty: all"
    )
    nodes_to_exclude: tuple[str, ...] = option(
        (), help="nodes that stay in fp32, by name or pattern (`*/ffn/*`)"
    )
    nodes_in_8_bits: tuple[str, ...] = option(
        (), help="nodes that get 8 bits where the others get 4, by name or pattern", sparse=True
    )
    sensitive_in_8_bits: float = option(
        0.0,
        help="share of the weights that get 8 bits where the others get 4: those of the nodes that lose most for their "
        "size in 4 bits, by `generate`'s prompts, or by `fidelity: {data: ...}`",
        minimum=0,
        maximum=1,
        sparse=True,
    )


@dataclass(frozen=True, slots=True)
class WeightParams:
    """Parameters of a quantization of weights."""

    options: WeightOptions


def run(context: StepContext) -> Outcome:
    """Quantize the weights of `model`; `hessians` are those of its inputs, for GPTQ, `sensitivity` says who gets 8 bits.

    A table of embeddings that is the head, too, is stored once, with the head's bits, and rounded for both: not by GPTQ.

    Raises:
        StepError: The options name nodes that are not there, nothing can be quantized, a weight is
            not finite, or ONNX Runtime refuses the result.
    """
    from onnxbuild.onnxkit.quantize.weight_only import replace_weights, tied_tables, weighted_nodes
    from onnxbuild.onnxkit.sensitivity.losses import most_lossy

    options: WeightOptions = context.params.options
    where = context.where
    source, target = context.input("model"), context.output("model")
    model = load_model(folded_constants(context), weights="mapped")
    included, excluded, in_8_bits = (
        select_nodes(getattr(options, name), model, option=name, where=where)
        for name in ("nodes_to_include", "nodes_to_exclude", "nodes_in_8_bits")
    )
    chosen = [
        each
        for each in weighted_nodes(model)
        if each.node.op_type in options.op_types
        and (not included or each.node.name in included)
        and each.node.name not in excluded
    ]
    odd = [each for each in chosen if options.bits == _HALF_BYTE and _is_odd_table(each)]
    chosen = [each for each in chosen if each not in odd]
    left = misfit_notes(Misfit(each.node.name, each.node.op_type, _ODD) for each in odd)
    counts = Counter(each.node.op_type for each in chosen)
    wanted = f"{_either(options.op_types)} with a constant fp32 matrix"
    refuse_nothing(counts, wanted, where, left=left)
    tied = tied_tables(chosen, options.block_size)
    holders = {name: each.node.name for name, each in tied.items()}
    sizes = {
        each.node.name: math.prod(each.dims) for each in chosen if each.node.name not in holders
    }
    lossy = most_lossy(context, options.sensitive_in_8_bits, sizes, holders)
    named = {holders.get(name, name) for name in (*in_8_bits, *lossy)}
    names = named & sizes.keys()
    rounding = _Rounding(
        options,
        read_factors(context.input("hessians")) if options.method == "gptq" else {},
        frozenset((each.home, each.weight) for each in chosen if each.node.name in names),
        frozenset(holders.values()),
        where,
    )
    fidelity = _Fidelity()
    replace_weights(
        model,
        chosen,
        lambda each, rows: fidelity.seen(rows, rounding.blocks(each, rows)),
        options.accuracy_level,
        tied,
    )
    canonicalize(model)
    notes = (*left, *_left_out(model))
    save_model(model, target, external=placement(source))
    check_loads(target, where)
    metrics = quantized_metrics(dict(sorted(counts.items())), source, target)
    mixed = {"in_8_bits": sorted(names)} if names else {}
    return Outcome({**metrics, **mixed, "weights_sqnr_db": fidelity.sqnr_db()}, notes=notes)


def _is_odd_table(each: Weighted) -> bool:
    """Return whether a Gather would find one element more in each row: two share a byte."""
    return each.node.op_type == "Gather" and each.dims[1] % 2 == 1


@dataclass(frozen=True, slots=True)
class _Rounding:
    """Rounding of each weight.

    Attributes:
        factors: Value that is multiplied -> the file of its factor, for GPTQ.
        in_8_bits: Weights that get 8 bits: all nodes that read one in a layout read the same blocks.
        tied: Names of products whose matrix is a table of embeddings, too: GPTQ would make up for errors of the one
            at the cost of the other, and GatherBlockQuantized has no fractional zero points.
    """

    options: WeightOptions
    factors: Mapping[str, Path]
    in_8_bits: frozenset[tuple[GraphScope, str]]
    tied: frozenset[str]
    where: str

    def blocks(self, each: Weighted, rows: np.ndarray) -> Blocks:
        """Round a node's weight.

        Raises:
            StepError: It is not finite.
        """
        from onnxbuild.onnxkit.quantize.blockwise import (
            BlockGrid,
            fit_least_error,
            fit_range,
            fits_half,
            half_quadratic,
            quantize_blocks,
            round_to_nearest,
            with_offsets,
        )
        from onnxbuild.onnxkit.quantize.gptq import quantize_by_errors

        name, options = each.node.name, self.options
        if not np.isfinite(rows).all():
            raise StepError(
                f"weight '{each.weight}' of node '{name}' holds NaN or infinity",
                where=self.where,
                fix="see that the model loads its trained weights",
            )
        bits = _BYTE if (each.home, each.weight) in self.in_8_bits else options.bits
        grid = BlockGrid(bits, options.block_size, options.symmetric)
        if options.scales_dtype == "float16" and fits_half(rows, grid):
            grid = replace(grid, half_scales=True)
        fit = fit_least_error if options.scales == "search" else fit_range
        nearest = partial(round_to_nearest, fit=fit)
        if each.node.op_type == "Gather" or name in self.tied:
            return quantize_blocks(rows, grid, nearest)
        if each.reads_main_graph and each.node.input[0] in self.factors:
            factor = np.load(self.factors[each.node.input[0]])
            return quantize_by_errors(rows, grid, factor, fit)
        if options.method == "hqq" and bits == options.bits:
            return with_offsets(quantize_blocks(rows, grid, half_quadratic))
        return quantize_blocks(rows, grid, nearest)


class _Fidelity:
    """Signal-to-noise ratio of all weights together, summed block by block."""

    def __init__(self) -> None:
        self._signal = self._noise = 0.0

    def seen(self, rows: np.ndarray, blocks: Blocks) -> Blocks:
        difference = np.subtract(rows, blocks.values(rows.shape[1]))
        self._signal += float(np.square(rows).sum(dtype=np.float64))
        self._noise += float(np.square(difference).sum(dtype=np.float64))
        return blocks

    def sqnr_db(self) -> float | None:
        """Signal to noise of the weights in decibels; None where nothing was lost."""
        if not self._noise or not self._signal:
            return None
        return round(10 * math.log10(self._signal / self._noise), 1)


def _left_out(model: onnx.ModelProto) -> tuple[str, ...]:
    """Fused attention holds its weights in an operator that has no form in few bits."""
    fused = sum(
        node.op_type == "Attention" and node.domain == "com.microsoft" for node in all_nodes(model)
    )
    if not fused:
        return ()
    note = (
        f"{fused} fused attention nodes keep their fp32 weights; write "
        "`optimize: {level: basic, transformer: false}` in the variant to have them as MatMul nodes"
    )
    return (note,)


def _either(op_types: tuple[str, ...]) -> str:
    return " or ".join(op_types) or "operator type in `op_types`"


KIND = StepKind(
    name="quantize-weights",
    version=8,
    params=WeightParams,
    inputs=("model", "hessians?", "sensitivity?"),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)
