"""Nodes that stay in fp32 while ONNX Runtime converts the rest of a model to fp16."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.onnxkit.calibrate.ranges import measure_ranges
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.fp16.casts import FLOAT, FLOAT16
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.graphs import all_graphs, names_read
from onnxbuild.onnxkit.model.inspect import ranks
from onnxbuild.onnxkit.model.scopes import GraphScope, all_names, name_maker, rename_reads, scopes
from onnxbuild.onnxkit.sessions.element_types import load_typed, without_weights

_PLACEHOLDER = "KeptInFp32"

_SMALL = 4096
"""A constant of at most so many elements, as a scale is, stays exact for the nodes that are kept, where others read
it in fp16. A larger one, as a table that is also a head's weight, is cast: a second copy would cost what fp16 saves."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A node that was taken out.

    Attributes:
        graph: That it is in.
        place: The node that stands there meanwhile; reads and makes the same values, but for constants.
        node: As it was.
        values: The values that it reads, floats among them, in the order of the placeholder's inputs.
        constants: The float32 initializers that it reads.
        exact: Copies of the small ones, and the graph that each is in.
        floats: Those of the values and of its outputs that are float32.
    """

    graph: onnx.GraphProto
    place: onnx.NodeProto
    node: onnx.NodeProto
    values: tuple[str, ...]
    constants: Mapping[str, onnx.TensorProto]
    exact: Mapping[str, tuple[onnx.TensorProto, onnx.GraphProto]]
    floats: frozenset[str]


def hide_kept(
    model: onnx.ModelProto, op_types: Sequence[str], names: Sequence[str]
) -> tuple[Kept, ...]:
    """Put a placeholder in the place of each node that stays in fp32; returns what to put back.

    Args:
        model: Every value of the main graph typed, names separate; changed.
        op_types: Operator types that stay.
        names: Names of nodes that stay.
    """
    stay_types, stay_names = set(op_types), set(names)

    def stays(node: onnx.NodeProto) -> bool:
        return node.op_type in stay_types or node.name in stay_names

    floats = _floats(model, stays)
    found = []
    for scope in scopes(model):
        found += [_hidden(scope, node, floats) for node in scope.graph.node if stays(node)]
    return tuple(found)


def restore_kept(model: onnx.ModelProto, kept: Sequence[Kept]) -> None:
    """Put the nodes back, with casts from and to fp16 around them, in place.

    Args:
        model: Converted: all that was float32 is fp16.
        kept: From `hide_kept`.
    """
    make = name_maker(all_names(model))
    infos = {value.name: value for graph in all_graphs(model) for value in graph.value_info}
    read: dict[tuple[int, str], str] = {}
    own: dict[str, str] = {}
    for each in kept:
        now = dict(zip(each.values, each.place.input, strict=True))
        outputs = list(each.place.output)
        renamed = {name: new for name, new in now.items() if new != name}
        turned = [(name, new) for name, new in now.items() if name in each.floats]
        halved = [name for name, tensor in each.constants.items() if tensor.data_type == FLOAT16]
        for name in halved:
            if name not in each.exact:
                turned.append((name, name))
                continue
            if name not in own:
                own[name] = make(f"{name}_fp32")
                tensor, home = each.exact[name]
                tensor.name = own[name]
                home.initializer.append(tensor)
            renamed[name] = own[name]
        for name, new in turned:
            key = id(each.graph), new
            if key not in read:
                read[key] = make(f"{new}_cast_to_fp32")
                each.graph.node.append(_cast(new, read[key], FLOAT))
            renamed[name] = read[key]
        each.place.CopyFrom(each.node)
        rename_reads(each.place, renamed)
        for n, output in enumerate(outputs):
            each.place.output[n] = output
            if each.node.output[n] not in each.floats:
                continue
            made = make(f"{output}_cast_to_fp16")
            each.place.output[n] = made
            each.graph.node.append(_cast(made, output, FLOAT16))
            info = onnx.ValueInfoProto()
            info.CopyFrom(infos.get(output, info))
            info.name, info.type.tensor_type.elem_type = made, FLOAT
            each.graph.value_info.append(info)


def _hidden(scope: GraphScope, node: onnx.NodeProto, floats: set[str]) -> Kept:
    """Turn a node into its placeholder."""
    constants = {}
    exact = {}
    values = []
    for name in sorted(names_read(node)):
        tensor = scope.initializer(name)
        if tensor is None:
            values.append(name)
        elif tensor.data_type == FLOAT:
            constants[name] = tensor
            home = scope.home(name)
            if home is not None and math.prod(tensor.dims) <= _SMALL:
                copy = onnx.TensorProto()
                copy.CopyFrom(tensor)
                exact[name] = copy, home.graph
    original = onnx.NodeProto()
    original.CopyFrom(node)
    node.Clear()
    node.name, node.op_type = original.name, _PLACEHOLDER
    node.input.extend(values)
    node.output.extend(original.output)
    own = frozenset(name for name in (*values, *original.output) if name in floats)
    return Kept(scope.graph, node, original, tuple(values), constants, exact, own)


def _floats(model: onnx.ModelProto, stays: Callable[[onnx.NodeProto], bool]) -> set[str]:
    """The float32 values of all graphs; those of nested graphs are inferred if they are asked for."""
    typed = model
    if any(stays(n) for s in scopes(model) if s.outer is not None for n in s.graph.node):
        typed = without_weights(model)
        typed.graph.value_info.extend(model.graph.value_info)
        typed = onnx.shape_inference.infer_shapes(typed)
    found = set()
    for scope in (*scopes(model), *(scopes(typed) if typed is not model else ())):
        for field in (scope.graph.input, scope.graph.output, scope.graph.value_info):
            found |= {each.name for each in field if each.type.tensor_type.elem_type == FLOAT}
    return found


def _cast(source: str, target: str, to: int) -> onnx.NodeProto:
    from onnx import helper

    return helper.make_node("Cast", [source], [target], f"{target}_node", to=to)


def nodes_beyond(
    source: Path, feeds: Iterable[Feeds], limit: float, *, scratch: Path, where: str
) -> tuple[str, ...]:
    """Names of the nodes that read or make a value of a magnitude above `limit`, in graph order.

    A mask's minus infinity (1e9 and beyond, see `measure_ranges`) is none: fp16 clamps it.

    Args:
        source: Folder of a canonical fp32 model.
        feeds: What it is run on; one is held at a time.
        limit: Greatest magnitude that is not beyond.
        scratch: A folder to work in.
        where: `recipe:step`, for messages.

    Raises:
        StepError: A value is NaN, or ONNX Runtime fails.
    """
    model = load_typed(source, weights="mapped")
    touched = [(node.name, {*node.input, *node.output}) for node in model.graph.node]
    ranges = measure_ranges(model, feeds, scratch=scratch, where=where)
    large = {name for name, (low, high) in ranges.bounds.items() if max(-low, high) > limit}
    return tuple(name for name, values in touched if values & large)


_LEAST_RANK = 3


def batch_transposes(model: onnx.ModelProto) -> tuple[str, ...]:
    """Nodes that move the first dimension of a MatMul's factor inwards, where the other factor has another rank.

    `MatMul(Transpose(x, perm=[1, 0, 2]), weight)` is what a recurrence with `batch_first` and a linear layer
    after it become. ONNX Runtime's MatmulTransposeFusion (core/optimizer/matmul_transpose_fusion.cc) leaves it
    alone in fp32, and takes it in fp16, where it looks through casts: 1.31.1 ends with SIGSEGV then.

    Args:
        model: Values typed as far as their ranks are known; a factor of unknown rank counts as another.
    """
    found: dict[str, None] = {}
    for scope in scopes(model):
        makers = {name: node for node in scope.graph.node for name in node.output}
        known = ranks(scope)
        for node in scope.graph.node:
            if node.op_type != "MatMul":
                continue
            for factor, other in (node.input, reversed(node.input)):
                maker = makers.get(factor)
                if maker is None or maker.op_type != "Transpose":
                    continue
                order = next((list(a.ints) for a in maker.attribute if a.name == "perm"), [])
                if _moves_batch(order) and known.get(other) != len(order):
                    found[maker.name] = None
    return tuple(found)


def _moves_batch(order: list[int]) -> bool:
    """Return whether dimension 0 becomes one of the last two, all before it moving one place to the front."""
    rank = len(order)
    inner = [*range(1, rank - 1)]
    return rank >= _LEAST_RANK and order in ([*inner, 0, rank - 1], [*inner, rank - 1, 0])
