"""Products of sorted rows with one matrix for each group, as mixtures of experts have them, in ONNX.

PyTorch has `aten::_grouped_mm`, transformers its own `grouped_mm_fallback`. ONNX has neither: the
rows are cut into groups, each is multiplied by its own MatMul, and empty groups give no rows.
Each matrix is a constant of its own, which a quantizer takes like any weight.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

NOTE = "products of experts are exported as one MatMul for each expert, on the tokens sent to it"

_RANKS = (2, 3)
"""Ranks of rows and weights."""

_AXES_AS_INPUT = 13
"""Opset from which ReduceSum takes its axes as an input."""

_INT64 = 7
_EVERY_ROW = 2**62


def dynamo_translations(used: set[str]) -> dict[Any, Callable[..., Any]]:
    """PyTorch operator -> onnxscript function, for the operators that are loaded.

    Args:
        used: Gets NOTE once one of them is called.
    """
    import torch

    def translate(
        rows: Any, weights: Any, offs: Any = None, bias: Any = None, out_dtype: int = -1
    ) -> Any:
        used.add(NOTE)
        return _grouped_matmul(rows, weights, offs, bias, out_dtype)

    grouped = (
        ("aten", "_grouped_mm"),
        ("transformers", "grouped_mm_fallback"),
    )
    spaces = [(getattr(torch.ops, space), name) for space, name in grouped]
    return {
        getattr(space, name).default: translate for space, name in spaces if hasattr(space, name)
    }


def _grouped_matmul(rows: Any, weights: Any, offs: Any, bias: Any, out_dtype: int) -> Any:
    """`rows[i] @ weights[g]` for the group g that row i is in.

    Args:
        rows: (rows, inner), sorted by group.
        weights: (groups, inner, columns).
        offs: End of each group, (groups,); rows beyond the last give zeros.
        bias: Not taken: no kernel of PyTorch has one.
        out_dtype: ONNX data type of the result; below 0 for that of the rows.

    Raises:
        NotImplementedError: Another of the operator's forms.
    """
    from onnxscript import opset18 as op

    if offs is None or bias is not None or (len(rows.shape), len(weights.shape)) != _RANKS:
        raise NotImplementedError(
            "aten::_grouped_mm is translated for two-dimensional rows and three-dimensional weights "
            "with `offs` and without `bias`"
        )
    groups = weights.shape[0]
    ends = op.Cast(offs, to=_INT64)
    bounds = op.Split(ends, axis=0, num_outputs=groups) if groups > 1 else [ends]
    start, axis = op.Constant(value_ints=[0]), op.Constant(value_ints=[0])
    products = []
    for group, end in enumerate(bounds):
        own = op.Slice(rows, start, end, axis)
        products.append(op.MatMul(own, op.Gather(weights, op.Constant(value_int=group))))
        start = end
    beyond = op.Slice(rows, start, op.Constant(value_ints=[_EVERY_ROW]), axis)
    columns = op.Shape(weights, start=2, end=3)
    none = op.Concat(op.Shape(beyond, start=0, end=1), columns, axis=0)
    products.append(op.Expand(op.CastLike(op.Constant(value_float=0.0), rows), none))
    result = op.Concat(*products, axis=0)
    return result if out_dtype is None or out_dtype < 0 else op.Cast(result, to=out_dtype)


@contextlib.contextmanager
def torchscript_symbolics(opset: int, notes: set[str]) -> Iterator[None]:
    """Register what the torchscript exporter lacks for mixtures of experts, for as long as needed.

    Args:
        opset: Opset of the export.
        notes: Gets NOTE once a grouped product is translated.
    """
    from torch.onnx import (
        register_custom_op_symbolic,
        symbolic_helper,
        unregister_custom_op_symbolic,
    )

    def grouped(g: Any, rows: Any, weights: Any, offs: Any, *_: object) -> Any:
        notes.add(NOTE)
        return _grouped_symbolic(g, rows, weights, offs)

    table = {
        "aten::histc": symbolic_helper.parse_args("v", "i", "f", "f")(_histc_symbolic),
        "aten::_grouped_mm": grouped,
        "transformers::grouped_mm_fallback": grouped,
    }
    for name, symbolic in table.items():
        register_custom_op_symbolic(name, symbolic, opset)
    try:
        yield
    finally:
        for name in table:
            unregister_custom_op_symbolic(name, opset)


def _grouped_symbolic(g: Any, rows: Any, weights: Any, offs: Any) -> Any:
    """Translate as `_grouped_matmul` does, for values of a TorchScript graph."""
    import torch
    from torch.onnx import JitScalarType

    def constant(value: Any) -> Any:
        return g.op("Constant", value_t=torch.as_tensor(value))

    sizes = weights.type().sizes()
    if sizes is None or len(sizes) != _RANKS[1] or offs.node().mustBeNone():
        raise NotImplementedError(
            "aten::_grouped_mm is translated with `offs` and weights of a known shape"
        )
    ends = g.op("Cast", offs, to_i=_INT64)
    start, axis = constant([0]), constant([0])
    products = []
    for group in range(sizes[0]):
        end = g.op("Gather", ends, constant([group]))
        own = g.op("Slice", rows, start, end, axis)
        products.append(g.op("MatMul", own, g.op("Gather", weights, constant(group))))
        start = end
    beyond = g.op("Slice", rows, start, constant([_EVERY_ROW]), axis)
    columns = g.op("Slice", g.op("Shape", weights), constant([2]), constant([3]))
    shape = g.op("Slice", g.op("Shape", beyond), constant([0]), constant([1]))
    none = g.op("Concat", shape, columns, axis_i=0)
    dtype = JitScalarType.from_value(weights).dtype()
    products.append(g.op("Expand", constant(torch.zeros(1, dtype=dtype)), none))
    return g.op("Concat", *products, axis_i=0)


def _histc_symbolic(g: Any, values: Any, bins: int, least: float, most: float) -> Any:
    """Counts of equal bins from `least` to `most`, both included.

    Raises:
        NotImplementedError: The range is that of the values, which `least == most` asks for.
    """
    import torch
    from torch.onnx import JitScalarType

    if least >= most:
        raise NotImplementedError("aten::histc is translated where `min` is below `max`")
    dtype = JitScalarType.from_value(values).dtype()

    def constant(value: torch.Tensor) -> Any:
        return g.op("Constant", value_t=value)

    low, high, count, last = (
        constant(torch.tensor(each, dtype=dtype)) for each in (least, most, bins, bins - 1)
    )
    flat = g.op("Reshape", values, constant(torch.tensor([1, -1])))
    # in PyTorch's order, so that values next to an edge are rounded alike
    scaled = g.op("Div", g.op("Mul", g.op("Sub", flat, low), count), g.op("Sub", high, low))
    bin_of = g.op("Min", g.op("Floor", scaled), last)
    below = g.op("Or", g.op("Less", flat, high), g.op("Equal", flat, high))
    numbers = constant(torch.arange(bins, dtype=dtype)[:, None])
    inside = g.op("And", g.op("Equal", bin_of, numbers), below)
    ones = g.op("Cast", inside, to_i=JitScalarType.from_dtype(dtype).onnx_type())
    if g.opset < _AXES_AS_INPUT:
        return g.op("ReduceSum", ones, axes_i=[1], keepdims_i=0)
    return g.op("ReduceSum", ones, constant(torch.tensor([1])), keepdims_i=0)
