"""Translations of PyTorch operators that the exporters lack, or whose own overflow, cancel, or are wrong for some values.

Most are written once, in ONNX operators, for both exporters: `op` is `TypedOperators`.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.frameworks import onnx

_SERIES_BELOW = 0.5
"""|x| below which log(1 + x) is computed without adding 1 to x."""

_ERFC = (
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196,
    1.00002368, -1.26551223,
)  # fmt: skip
"""Chebyshev fit of log(erfc), the highest power first (Press et al., Numerical Recipes, section 6.2): 1.2e-7 of the value."""

_TRANSLATED_BY_ATTENTION = 23
"""Opset from which dynamo writes ONNX's Attention."""

_EVERY_SINCE = 11
_SINCE = {"aten::scaled_dot_product_attention": 14, "aten::cosine_similarity": 13}
"""Opset from which torchscript's translations can be written: Equal takes floats, ReduceSum takes axes, PyTorch has a symbolic."""

_INT32, _BOOL = 6, 9
"""TensorProto's."""

_REDUCTIONS = {1: "ReduceMean", 2: "ReduceSum"}
"""Reduction of a loss -> operator (at::Reduction)."""

_LOG_ADD_EXP = """logaddexp (TYPE sum_before, TYPE sum_next) => (TYPE sum_after, TYPE sum_kept)
{
  sum_same = Equal(sum_before, sum_next)
  sum_apart = Sub(sum_before, sum_next)
  sum_zero = Constant<value_float = 0.0>()
  sum_none = CastLike(sum_zero, sum_next)
  sum_distance = Where(sum_same, sum_none, sum_apart)
  sum_length = Abs(sum_distance)
  sum_below = Neg(sum_length)
  sum_more = Softplus(sum_below)
  sum_most = Max(sum_before, sum_next)
  sum_after = Add(sum_most, sum_more)
  sum_kept = Identity(sum_after)
}"""
"""Body of a Scan: logaddexp of what came before, and of the next element."""

NOTE = "products of experts are exported as one MatMul for each expert, on the tokens sent to it"

_RANKS = (2, 3)
"""Ranks of rows and weights."""

_AXES_AS_INPUT = 13
"""Opset from which ReduceSum takes its axes as an input."""

_INT64 = 7

_EVERY_ROW = 2**62


class TypedOperators:
    """ONNX operators as methods; floats among their inputs become constants.

    Args:
        node: Adds a node: operator, inputs, attributes; returns its output.
        number: Adds a constant of the right type.
    """

    def __init__(
        self,
        node: Callable[[str, Sequence[Any], Mapping[str, int | str]], Any],
        number: Callable[[float], Any],
    ) -> None:
        self._node, self._number = node, number

    def __getattr__(self, operator: str) -> Callable[..., Any]:
        """Return what adds a node of an operator."""

        def add(*inputs: Any, **attributes: int | str) -> Any:
            values = [self._number(each) if isinstance(each, float) else each for each in inputs]
            return self._node(operator, values, attributes)

        return add


def log1p(op: TypedOperators, x: Any) -> Any:
    """Log(1 + x); 2 atanh(x / (x + 2)) where adding 1 would round x away."""
    near = op.Mul(op.Atanh(op.Div(x, op.Add(x, 2.0))), 2.0)
    return op.Where(op.Less(op.Abs(x), _SERIES_BELOW), near, op.Log(op.Add(x, 1.0)))


def expm1(op: TypedOperators, x: Any) -> Any:
    """Exp(x) - 1 = tanh(x / 2) (exp(x) + 1)."""
    return op.Mul(op.Tanh(op.Mul(x, 0.5)), op.Add(op.Exp(x), 1.0))


def logaddexp(op: TypedOperators, a: Any, b: Any) -> Any:
    """The greater one, and log(1 + exp(-|a - b|)); two equal infinities are not subtracted."""
    apart = op.Where(op.Equal(a, b), 0.0, op.Sub(a, b))
    return op.Add(op.Max(a, b), op.Softplus(op.Neg(op.Abs(apart))))


def logaddexp2(op: TypedOperators, a: Any, b: Any) -> Any:
    """Return what `logaddexp` does, to the base 2."""
    apart = op.Where(op.Equal(a, b), 0.0, op.Sub(a, b))
    more = op.Softplus(op.Mul(op.Abs(apart), -math.log(2.0)))
    return op.Add(op.Max(a, b), op.Div(more, math.log(2.0)))


def log_sigmoid(op: TypedOperators, x: Any) -> Any:
    """-log(1 + exp(-x)), whose exponential overflows where x is far below 0."""
    return op.Sub(op.Min(x, 0.0), op.Softplus(op.Neg(op.Abs(x))))


def erfc(op: TypedOperators, x: Any) -> Any:
    """1 - erf(x), without the subtraction where it is small."""
    scaled = _scaled_erfc(op, op.Abs(x))
    tail = op.Mul(scaled, op.Exp(op.Neg(op.Mul(x, x))))
    return op.Where(op.Less(x, 0.0), op.Sub(2.0, tail), tail)


def erfcx(op: TypedOperators, x: Any) -> Any:
    """Exp(x^2) erfc(x)."""
    scaled = _scaled_erfc(op, op.Abs(x))
    twice = op.Mul(op.Exp(op.Mul(x, x)), 2.0)
    return op.Where(op.Less(x, 0.0), op.Sub(twice, scaled), scaled)


def _scaled_erfc(op: TypedOperators, z: Any) -> Any:
    """Exp(z^2) erfc(z) for z >= 0."""
    t = op.Reciprocal(op.Add(op.Mul(z, 0.5), 1.0))
    power = op.Add(op.Mul(t, _ERFC[0]), _ERFC[1])
    for coefficient in _ERFC[2:]:
        power = op.Add(op.Mul(power, t), coefficient)
    return op.Mul(t, op.Exp(power))


def hypot(op: TypedOperators, a: Any, b: Any) -> Any:
    """Square root of a^2 + b^2, which may overflow, by the ratio of the two."""
    a, b = op.Abs(a), op.Abs(b)
    most = op.Max(a, b)
    ratio = op.Div(op.Min(a, b), op.Where(op.Equal(most, 0.0), 1.0, most))
    return op.Mul(most, op.Sqrt(op.Add(op.Mul(ratio, ratio), 1.0)))


def atan2(op: TypedOperators, y: Any, x: Any) -> Any:
    """Angle of (x, y); pi where y is 0 and x negative."""
    unsigned = op.Where(op.Equal(x, 0.0), 0.0, x)  # a zero may be -0.0
    slope = op.Where(op.Equal(y, 0.0), 0.0, op.Div(y, unsigned))
    turn = op.Where(_negative(op, y), -math.pi, math.pi)
    return op.Add(op.Atan(slope), op.Where(op.Less(x, 0.0), turn, 0.0))


def copysign(op: TypedOperators, a: Any, b: Any) -> Any:
    """|a| with the sign of b, which may be that of a zero."""
    size = op.Abs(a)
    return op.Where(_negative(op, b), op.Neg(size), size)


def _negative(op: TypedOperators, x: Any) -> Any:
    """Whether the sign bit is set: 1 / -0.0 is -inf."""
    return op.Or(op.Less(x, 0.0), op.Less(op.Reciprocal(x), 0.0))


def remainder(op: TypedOperators, a: Any, b: Any) -> Any:
    """Remainder of floats with the divisor's sign; a - floor(a / b) b is off where a / b rounds up to a whole number."""
    rest = op.Mod(a, b, fmod=1)
    return op.Where(_other_side(op, rest, b), op.Add(rest, b), rest)


def floor_divide(op: TypedOperators, a: Any, b: Any) -> Any:
    """Floor(a / b) of floats, of the exact quotient, as c10/util/generic_math.h computes it."""
    rest = op.Mod(a, b, fmod=1)
    whole = op.Div(op.Sub(a, rest), b)
    whole = op.Round(op.Where(_other_side(op, rest, b), op.Sub(whole, 1.0), whole))
    return op.Where(op.Equal(b, 0.0), op.Div(a, b), whole)


def _other_side(op: TypedOperators, rest: Any, b: Any) -> Any:
    differs = op.Xor(op.Less(rest, 0.0), op.Less(b, 0.0))
    return op.And(differs, op.Not(op.Equal(rest, 0.0)))


def xlog1py(op: TypedOperators, x: Any, y: Any) -> Any:
    """X log(1 + y); 0 where x is."""
    return op.Where(op.Equal(x, 0.0), 0.0, op.Mul(x, log1p(op, y)))


def cross_entropy_with_logits(
    op: TypedOperators, x: Any, target: Any, weight: Any, positive: Any
) -> Any:
    """Binary cross entropy of each logit: (1 - t) x + (1 + (p - 1) t) log(1 + exp(-x)), by `weight`."""
    loss = op.Neg(log_sigmoid(op, x))
    if positive is not None:
        loss = op.Mul(loss, op.Add(op.Mul(op.Sub(positive, 1.0), target), 1.0))
    loss = op.Add(op.Mul(op.Sub(1.0, target), x), loss)
    return loss if weight is None else op.Mul(loss, weight)


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "log1p": log1p,
    "expm1": expm1,
    "logaddexp": logaddexp,
    "logaddexp2": logaddexp2,
    "log_sigmoid": log_sigmoid,
    "erfc": erfc,
    "special_erfcx": erfcx,
    "special_xlog1py": xlog1py,
    "hypot": hypot,
    "atan2": atan2,
}
"""Operator -> its translation, which takes what it takes."""


def dynamo_translations(opset: int, notes: set[str]) -> dict[Any, Callable[..., Any]]:
    """PyTorch operator -> onnxscript function, for the operators that are loaded.

    Args:
        opset: Opset of the export.
        notes: Gets NOTE once a grouped product is translated.
    """
    import torch
    from onnxscript import opset18 as op
    from onnxscript.function_libs.torch_lib.ops import core

    aten = torch.ops.aten

    def floor_divide_any(self: Any, other: Any) -> Any:
        if self.dtype.is_floating_point():
            return floor_divide(_of_onnxscript(self), self, other)
        return core.aten_floor_divide(self, other)

    def divide(self: Any, other: Any, rounding_mode: str | None = None) -> Any:
        if rounding_mode == "floor":
            return floor_divide_any(self, other)
        if rounding_mode == "trunc" and self.dtype.is_integer():
            return op.Div(self, other)
        return core.aten_div_mode(self, other, rounding_mode)

    def remainder_any(self: Any, other: Any) -> Any:
        if self.dtype.is_floating_point():
            return remainder(_of_onnxscript(self), self, other)
        return core.aten_remainder(self, other)

    def remainder_of_number(self: Any, other: float) -> Any:
        if self.dtype.is_floating_point():
            return remainder(_of_onnxscript(self), self, other)
        return core.aten_remainder_scalar(self, other)

    def scatter_reduce(  # noqa: PLR0917 # PyTorch's
        self: Any,
        dim: int,
        index: Any,
        src: Any,
        reduce: str,
        include_self: bool = True,  # noqa: FBT001, FBT002
    ) -> Any:
        if reduce != "mean":
            return core.aten_scatter_reduce(self, dim, index, src, reduce, include_self)
        return _scatter_mean(
            _of_onnxscript(self), self, dim, index, src, include_self=include_self
        )

    table = {
        getattr(aten, name).default: _by_position(function)
        for name, function in _ELEMENTWISE.items()
    }
    table |= {
        aten.copysign.Tensor: _by_position(copysign),
        aten.remainder.Tensor: remainder_any,
        aten.remainder.Scalar: remainder_of_number,
        aten.floor_divide.default: floor_divide_any,
        aten.div.Tensor_mode: divide,
        aten.scatter_reduce.two: scatter_reduce,
        aten.logcumsumexp.default: _log_cumulative_sum,
    }
    table |= _grouped_products(notes)
    if opset < _TRANSLATED_BY_ATTENTION:
        table[aten.scaled_dot_product_attention.default] = _attention
    return table


def _by_position(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a translation as dynamo calls it: with an operator's arguments alone."""

    def unary(self: Any) -> Any:
        return function(_of_onnxscript(self), self)

    def binary(self: Any, other: Any) -> Any:
        return function(_of_onnxscript(self), self, other)

    return unary if len(inspect.signature(function).parameters) == len(("op", "x")) else binary


def _of_onnxscript(like: Any) -> TypedOperators:
    """Operators that dynamo's exporter records, with numbers of the type of a value."""
    import onnx_ir
    from onnxscript import opset18

    def node(name: str, inputs: Sequence[Any], attributes: Mapping[str, int | str]) -> Any:
        return getattr(opset18, name)(*inputs, **attributes)

    return TypedOperators(
        node, lambda number: opset18.Constant(value=onnx_ir.tensor(number, dtype=like.dtype))
    )


def _attention(  # noqa: PLR0917 # PyTorch's
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,  # noqa: FBT001, FBT002
) -> Any:  # fmt: skip
    """Attention with zeros where a position sees no other: softmax has no value there."""
    from onnxscript import opset18 as op
    from onnxscript.function_libs.torch_lib.ops import nn

    found = nn.aten_scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    )
    if attn_mask is None:
        return found
    by_value = attn_mask.dtype.is_floating_point()
    seen = op.Greater(attn_mask, -math.inf) if by_value else attn_mask
    some = op.ReduceMax(op.Cast(seen, to=_INT32), op.Constant(value_ints=[-1]), keepdims=1)
    return _of_onnxscript(query).Where(op.Cast(some, to=_BOOL), found, 0.0)


def _scatter_mean(
    op: TypedOperators, base: Any, dim: int, index: Any, src: Any, *, include_self: bool
) -> Any:
    """Mean of the elements that are scattered to each place; `base` where there are none.

    Raises:
        NotImplementedError: The elements are integers, or scalars.
    """
    if not base.dtype.is_floating_point() or not base.shape:
        raise NotImplementedError(
            "aten::scatter_reduce with `mean` is translated for tensors of floats"
        )
    empty = op.Expand(0.0, op.Shape(base))
    ones = op.Expand(1.0, op.Shape(index))
    count = op.ScatterElements(empty, index, ones, axis=dim, reduction="add")
    start = base if include_self else empty
    total = op.ScatterElements(start, index, src, axis=dim, reduction="add")
    if include_self:
        return op.Div(total, op.Add(count, 1.0))
    return op.Where(op.Equal(count, 0.0), base, op.Div(total, op.Max(count, 1.0)))


def _log_cumulative_sum(self: Any, dim: int) -> Any:
    """Logarithm of the cumulative sum of exponentials, one element after the other."""
    import onnx_ir
    from onnxscript import opset18 as op

    if len(self.shape) == 0:
        return self
    axis = dim % len(self.shape)
    text = _LOG_ADD_EXP.replace("TYPE", self.dtype.name.lower())
    parsed = onnx.parser.parse_graph(text)
    for each in (*parsed.input, *parsed.output):
        each.type.tensor_type.ClearField("shape")
    body = onnx_ir.serde.deserialize_graph(parsed)
    first = op.Gather(self, op.Constant(value_int=0), axis=axis)
    none = op.Expand(op.CastLike(op.Constant(value_float=-math.inf), self), op.Shape(first))
    _, found = _scan()(
        none, self, body=body, num_scan_inputs=1, scan_input_axes=[axis], scan_output_axes=[axis]
    )
    return found


def _scan() -> Any:
    """ONNX's Scan with one state and one output: onnxscript takes its variadic outputs for one."""
    from onnx.defs import OpSchema, get_schema
    from onnxscript import opset18, values

    scan, formal = get_schema("Scan", opset18.version), OpSchema.FormalParameter
    tensors = ["tensor(float)", "tensor(float16)", "tensor(double)", "tensor(bfloat16)"]
    return values.Op(
        opset18,
        "Scan",
        OpSchema(
            "Scan",
            "",
            scan.since_version,
            inputs=[formal("state", "T"), formal("elements", "T")],
            outputs=[formal("last", "T"), formal("found", "T")],
            type_constraints=[("T", tensors, "")],
            attributes=list(scan.attributes.values()),
        ),
    )


@contextlib.contextmanager
def torchscript_translations(opset: int, notes: set[str]) -> Iterator[None]:
    """Register translations for the torchscript exporter, for as long as needed.

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

    parsed = symbolic_helper.parse_args
    stable = {f"aten::{name}": _symbolic(function) for name, function in _ELEMENTWISE.items()}
    stable |= {
        "aten::copysign": _symbolic(copysign),
        "aten::binary_cross_entropy_with_logits": parsed("v", "v", "v", "v", "i")(
            _cross_entropy_symbolic
        ),
        "aten::cosine_similarity": parsed("v", "v", "i", "f")(_cosine_symbolic),
        "aten::softplus": parsed("v", "f", "f")(_softplus_symbolic),
        "aten::remainder": _remainder_symbolic,
        "aten::floor_divide": _floor_divide_symbolic,
        "aten::scaled_dot_product_attention": _attention_symbolic,
    }
    table = {
        **{name: each for name, each in stable.items() if opset >= _SINCE.get(name, _EVERY_SINCE)},
        "aten::histc": parsed("v", "i", "f", "f")(_histc_symbolic),
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


def _symbolic(function: Callable[..., Any]) -> Callable[..., Any]:
    def symbolic(g: Any, *inputs: Any) -> Any:
        return function(_of_graph(g, inputs[0]), *inputs)

    return symbolic


def _of_graph(graph: Any, like: Any) -> TypedOperators:
    """Operators that add nodes to a TorchScript graph.

    Args:
        graph: The graph's context, as PyTorch passes it to a symbolic function.
        like: A value of the numbers' type.
    """
    import torch
    from torch.onnx import JitScalarType

    dtype = JitScalarType.from_value(like).dtype()

    def node(name: str, inputs: Sequence[Any], attributes: Mapping[str, int | str]) -> Any:
        return graph.op(name, *inputs, **{f"{key}_i": value for key, value in attributes.items()})

    return TypedOperators(
        node, lambda number: graph.op("Constant", value_t=torch.tensor(number, dtype=dtype))
    )


def _cross_entropy_symbolic(  # noqa: PLR0917 # PyTorch's
    g: Any, x: Any, target: Any, weight: Any, positive: Any, reduction: int
) -> Any:
    op = _of_graph(g, x)
    weight, positive = (None if each.node().mustBeNone() else each for each in (weight, positive))
    loss = cross_entropy_with_logits(op, x, target, weight, positive)
    return getattr(op, _REDUCTIONS[reduction])(loss, keepdims=0) if reduction else loss


def _cosine_symbolic(g: Any, a: Any, b: Any, dim: int, eps: float) -> Any:
    """Each vector divided by its own length, which is at least eps: the product of two lengths underflows."""
    import torch

    op = _of_graph(g, a)
    sizes = [each.type().sizes() for each in (a, b)]
    if sizes[0] is None or None in sizes[0] or sizes[0] != sizes[1]:
        shape = g.op("Shape", op.Add(a, b))
        a, b = g.op("Expand", a, shape), g.op("Expand", b, shape)
    axes = g.op("Constant", value_t=torch.tensor([dim]))

    def directed(x: Any) -> Any:
        length = op.Sqrt(op.ReduceSum(op.Mul(x, x), axes))
        return op.Div(x, op.Max(length, eps))

    return op.ReduceSum(op.Mul(directed(a), directed(b)), axes, keepdims=0)


def _softplus_symbolic(g: Any, x: Any, beta: float, _threshold: float) -> Any:
    """Softplus of -|x|: of 16-bit floats, ONNX Runtime computes it as log(exp(x) + 1)."""
    op = _of_graph(g, x)
    below = op.Neg(op.Abs(x))
    more = op.Softplus(below) if beta == 1.0 else op.Div(op.Softplus(op.Mul(below, beta)), beta)
    return op.Add(op.Max(x, 0.0), more)


def _remainder_symbolic(g: Any, a: Any, b: Any) -> Any:
    of_floats = [each for each in (a, b) if _is_float(each)]
    return remainder(_of_graph(g, of_floats[0]), a, b) if of_floats else g.op("Mod", a, b)


def _floor_divide_symbolic(g: Any, a: Any, b: Any) -> Any:
    """Floor, where PyTorch's own symbolic cuts off towards zero; sizes, which are scalars, are never negative."""
    from torch.onnx import symbolic_opset9

    of_floats = [each for each in (a, b) if _is_float(each)]
    if of_floats:
        return floor_divide(_of_graph(g, of_floats[0]), a, b)
    if not a.type().dim():
        return symbolic_opset9.floor_divide(g, a, b)
    return g.op("Div", g.op("Sub", a, g.op("Mod", a, b)), b)


def _attention_symbolic(g: Any, query: Any, key: Any, value: Any, mask: Any, *others: Any) -> Any:
    """Return what `_attention` does, for a mask of floats: that of bools is translated so already."""
    import torch
    from torch.onnx import symbolic_opset14

    found = symbolic_opset14.scaled_dot_product_attention(g, query, key, value, mask, *others)
    if mask.node().mustBeNone() or not _is_float(mask):
        return found
    op = _of_graph(g, mask)
    seen = op.Cast(op.Greater(mask, -math.inf), to=_INT32)
    some = op.ReduceSum(seen, g.op("Constant", value_t=torch.tensor([-1])))
    return op.Where(op.Cast(some, to=_BOOL), found, 0.0)


def _is_float(value: Any) -> bool:
    from torch.onnx import JitScalarType

    dtype = JitScalarType.from_value(value, JitScalarType.UNDEFINED)
    return dtype != JitScalarType.UNDEFINED and bool(dtype.dtype().is_floating_point)


def _grouped_products(notes: set[str]) -> dict[Any, Callable[..., Any]]:
    """Translations of grouped products, of the operators that are loaded."""
    import torch

    def grouped(
        rows: Any, weights: Any, offs: Any = None, bias: Any = None, out_dtype: int = -1
    ) -> Any:
        notes.add(NOTE)
        return _grouped_matmul(rows, weights, offs, bias, out_dtype)

    known = ((torch.ops.aten, "_grouped_mm"), (torch.ops.transformers, "grouped_mm_fallback"))
    return {getattr(space, name).default: grouped for space, name in known if hasattr(space, name)}


def _grouped_matmul(rows: Any, weights: Any, offs: Any, bias: Any, out_dtype: int) -> Any:
    """`rows[i] @ weights[g]` for the group g that row i is in.

    Args:
        rows: (rows, inner), sorted by group.
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
