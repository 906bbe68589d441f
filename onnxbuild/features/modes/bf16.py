"""`bf16`: large weights in 16-bit brain floats, arithmetic in fp32."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import NotApplicableError
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Variant
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.diagnosis_hints import KeptNodes
from onnxbuild.expansion.feature import Mode
from onnxbuild.expansion.fused import fused_for
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance
from onnxbuild.onnxkit.fp16.float16 import lift_constants
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import element_count, insert_nodes, opset_of
from onnxbuild.onnxkit.model.model_files import (
    file_bytes,
    is_outside,
    load_model,
    placement,
    refer,
    save_model,
    weight_array,
)
from onnxbuild.onnxkit.model.node_patterns import select_nodes
from onnxbuild.onnxkit.model.opsets import OpsetError
from onnxbuild.onnxkit.model.scopes import all_names, name_maker, scopes
from onnxbuild.onnxkit.sessions.open import check_loads

NAME = "bf16"
_LEAST_OPSET = 13
"""Cast takes bfloat16 since then (ONNX's operator changelog)."""

_LEAST_RANK = 2
"""Biases, norms and scales have one dimension, and errors in them reach every element."""

_SIGN, _MAGNITUDE, _INFINITY, _QUIET_NAN, _LARGEST = 0x8000, 0x7FFF, 0x7F80, 0x7FC0, 0x7F7F
"""Bit patterns of bfloat16."""

_BELOW_HALF = 0x7FFF
"""Just below half of bfloat16's last place, in the bits that are cut off."""

_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Bf16Options:
    """Options of `mode: bf16`."""

    min_elements: int = option(
        1024,
        help="least number of elements of a weight that becomes bf16; smaller weights, and all with "
        "fewer than two dimensions, stay in fp32",
        minimum=1,
    )
    nodes_to_exclude: tuple[str, ...] = option(
        (), help="nodes whose weights stay in fp32, by name or pattern (`*/ffn/*`)"
    )


@dataclass(frozen=True, slots=True)
class Bf16Params:
    """Parameters of a conversion."""

    options: Bf16Options


def run(context: StepContext) -> Outcome:
    """Store the large fp32 weights of `model` in bf16, each with a Cast to fp32 in front of its readers.

    Raises:
        StepError: The options name nodes that are not there.
        OpsetError: The model's opset has no Cast from bf16.
        NotApplicableError: No weight is large enough.
    """
    options: Bf16Options = context.params.options
    source, target = context.input("model"), context.output("model")
    model = load_model(source, weights="mapped")
    if opset_of(model) < _LEAST_OPSET:
        what = f"mode 'bf16' needs opset {_LEAST_OPSET}; the model has opset {opset_of(model)}"
        raise OpsetError(what, where=context.where, least=_LEAST_OPSET)
    kept = select_nodes(
        options.nodes_to_exclude, model, option="nodes_to_exclude", where=context.where
    )
    lift_constants(model)
    stored = _store(model, options.min_elements, kept, context.scratch / "rounded")
    if not stored:
        others = " outside `nodes_to_exclude`" if kept else ""
        raise NotApplicableError(
            f"no fp32 weight{others} has two dimensions and at least {options.min_elements} elements, "
            "so there is nothing to store in bf16",
            where=context.where,
            fix="write a smaller `min_elements`, or take this variant out of `quantization`",
        )
    canonicalize(model)
    save_model(model, target, external=placement(source))
    check_loads(target, context.where)
    size = file_bytes(target)
    ratio = round(size / file_bytes(source), 4)
    return Outcome({"bf16_weights": stored, "size_bytes": size, "size_ratio": ratio})


def _store(model: onnx.ModelProto, least: int, kept: Collection[str], spill: Path) -> int:
    """Change a model's weights in place, but those that a kept node reads; returns how many."""
    make_name = name_maker(all_names(model))
    stored = 0
    every = list(scopes(model))
    exempt = {
        (scope.home(name), name)
        for scope in every
        for node in scope.graph.node
        if node.name in kept
        for name in node.input
    }
    for scope in every:
        casts = []
        for tensor in _large_weights(scope.graph, least):
            value = tensor.name
            if (scope, value) in exempt:
                continue
            tensor.name = make_name(f"{value}_bf16")
            _round(tensor, spill)
            cast = onnx.helper.make_node(
                "Cast", [tensor.name], [value], name=f"{value}_to_fp32", to=onnx.TensorProto.FLOAT
            )
            casts.append(cast)
        if casts:
            insert_nodes(scope.graph, {0: casts})
        stored += len(casts)
    return stored


def _large_weights(graph: onnx.GraphProto, least: int) -> Iterator[onnx.TensorProto]:
    for tensor in graph.initializer:
        is_large = len(tensor.dims) >= _LEAST_RANK and element_count(tensor) >= least
        if is_large and tensor.data_type == onnx.TensorProto.FLOAT:
            yield tensor


def _round(tensor: onnx.TensorProto, spill: Path) -> None:
    """Round a tensor's elements in place; of a mapped one, into a file that it is mapped from then."""
    flat = np.asarray(weight_array(tensor), np.float32).reshape(-1)
    parts = (
        bf16_bits(flat[start : start + _CHUNK]).astype("<u2").tobytes()
        for start in range(0, flat.size, _CHUNK)
    )
    if is_outside(tensor):
        with spill.open("ab") as file:
            offset = file.tell()
            file.writelines(parts)
            refer(tensor, str(spill.resolve()), offset, file.tell() - offset)
    else:
        content = b"".join(parts)
        tensor.ClearField("float_data")
        tensor.raw_data = content
    tensor.data_type = onnx.TensorProto.BFLOAT16


def bf16_bits(array: np.ndarray) -> np.ndarray:
    """Round to bfloat16: to the nearest, ties to even.

    What would round up to infinity becomes the largest finite value: masks hold the lowest fp32 value,
    and a row of infinities makes softmax NaN.

    Args:
        array: float32, one dimension.

    Returns: uint16, the same length: the upper halves of the rounded fp32 bit patterns.
    """
    bits = np.ascontiguousarray(array).view(np.uint32)
    half = _BELOW_HALF + ((bits >> 16) & 1)
    rounded: np.ndarray = ((bits + half) >> 16).astype(np.uint16)
    sign = (bits >> 16).astype(np.uint16) & _SIGN
    overflows = np.isfinite(array) & ((rounded & _MAGNITUDE) == _INFINITY)
    rounded[overflows] = sign[overflows] | _LARGEST
    is_nan = np.isnan(array)
    rounded[is_nan] = sign[is_nan] | _QUIET_NAN
    return rounded


def _model(scope: Scope, variant: Variant) -> OutputRef:
    step = scope.step(
        of_variant(scope.recipe, variant, "convert"),
        KIND,
        Bf16Params(variant.options_as(Bf16Options)),
        {"model": fused_for(scope, variant)},
        at=variant.location,
    )
    return OutputRef(step, "model")


KIND = StepKind(
    name="convert-bf16",
    version=1,
    params=Bf16Params,
    inputs=("model",),
    outputs={"model": "onnx-model"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run,
)

FEATURE = Mode(
    name=NAME,
    precision=NAME,
    tolerances={NAME: Tolerance(cosine_min=0.999, sqnr_db_min=20.0, equal_min=0.99)},
    words="bfloat16 brain bfloat",
    options=Bf16Options,
    kinds=(KIND,),
    model=_model,
    kept_nodes=KeptNodes(KIND.name),
)
