"""Attention over a cache as one node, GroupQueryAttention: no copy of the cache for repeated heads, nor for a new element.

A match is a Softmax over a product with the keys of a state (or ONNX's Attention), whose product with the state's
values is read by what follows. The node refuses a batch that gets several elements after a past, and gives something
else where a row hides all elements, as padding does: for these the graph keeps the original nodes, in the branch of an
If.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.core.axis import Dimension, Point, symbols_of
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.data.states import growth_in, state_inputs
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import keep, opset_of
from onnxbuild.onnxkit.model.model_files import load_model, save_model, weight_array
from onnxbuild.onnxkit.model.tensor_types import numpy_dtype
from onnxbuild.onnxkit.optimize.held_constants import HeldConstants
from onnxbuild.onnxkit.optimize.known_dimensions import (
    Shapes,
    Sizes,
    observed_shapes,
    settle_dimensions,
    shape_readers,
)
from onnxbuild.onnxkit.optimize.offline_optimization import UNFUSABLE, optimize_offline
from onnxbuild.onnxkit.sessions.element_types import load_typed

FUSION = "cached-attention"
"""Its name among the fusions that may be left out."""

OPERATOR, DOMAIN = "GroupQueryAttention", "com.microsoft"

_LAYOUT = {"Expand", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
"""Operators between a cache and the product with it: they repeat heads, and turn matrices."""

_HEADS, _PAST, _RANK = 1, 2, 4
"""Axes of a cache: batch, heads, elements, size of a head."""

_FLOATS, _BOOL, _INT32 = (1, 10, 11), 9, 6
"""TensorProto's: float32, float16 and float64; bool; int32."""

_HIDDEN = -65504.0
"""Bias of a hidden element: float16's least."""

_AXES_ARE_AN_INPUT_FROM = 18
"""The opset since which ReduceMax takes `axes` as an input."""

_TURN = [0, 2, 1, 3]
"""From (batch, heads, elements, size) to (batch, elements, heads, size), and back."""


@dataclass(frozen=True, slots=True)
class FusedCaches:
    """A model whose attention over its caches is fused.

    Attributes:
        held: The model, as fusions take it.
        fused: Number of layers that are.
        layers: Number of layers with a cache.
    """

    held: HeldConstants
    fused: int
    layers: int


def fuse_caches(
    held: HeldConstants,
    inputs: Sequence[DummyInput],
    points: Sequence[Point],
    *,
    scratch: Path,
    where: str,
) -> FusedCaches:
    """Fuse the attention over caches, of all layers whose graph is that of attention.

    Args:
        held: The model.
        points: Sizes at which values are looked at; at the first two all axes differ.
        scratch: A folder that does not exist.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime refuses the model.
    """

    def simplified(source: Path, name: str) -> Path:
        return optimize_offline(
            source, scratch / name, level="basic", disabled=UNFUSABLE, where=where
        )

    def shapes(name: str, values: Sequence[str]) -> Shapes:
        model = load_model(scratch / name, weights="mapped")
        held.put_back(model)
        watched = scratch / f"{name}-watched"
        return observed_shapes(model, values, inputs, points, scratch=watched, where=where)

    model = load_model(simplified(held.source, "basic"), weights="mapped")
    settle_dimensions(model, shapes("basic", shape_readers(model)), Sizes(model, inputs))
    canonicalize(model)
    save_model(model, scratch / "settled")
    model = load_typed(simplified(scratch / "settled", "folded"), weights="mapped")
    attention = CachedAttention(model, inputs)
    read = dict.fromkeys(name for each in attention.matches for name in each.read)
    fused = attention.fuse(shapes("folded", list(read)))
    canonicalize(model)
    save_model(model, scratch / "fused")
    return FusedCaches(replace(held, source=scratch / "fused"), fused, attention.layers)


@dataclass(frozen=True, slots=True)
class LayerAttention:
    """The attention of one layer.

    Attributes:
        query: Shape (batch, heads, sequence, size), not scaled.
        key, value: Concat nodes of the past and the new elements.
        bias: What is added to the scores, or a mask of bools; empty where there is none.
        is_mask: Whether it is that.
        scale: Factor of the scores; None for 1 / sqrt(size).
        output: The node that gives (batch, heads, sequence, size).
    """

    query: str
    key: onnx.NodeProto
    value: onnx.NodeProto
    bias: str
    is_mask: bool
    scale: float | None
    output: onnx.NodeProto

    @property
    def read(self) -> tuple[str, ...]:
        """Values whose shapes must be known."""
        return tuple(filter(None, (self.query, self.bias)))


class CachedAttention:
    """The matches of a model, and what they become.

    Args:
        model: Optimized without the fusions that hide products, its sizes settled; changed in place by `fuse`.
        inputs: As the recipe declares them.
    """

    def __init__(self, model: onnx.ModelProto, inputs: Sequence[DummyInput]) -> None:
        self._model, self._graph, self._inputs = model, model.graph, inputs
        self._growth = growth_in(inputs)
        self._makers = {name: node for node in self._graph.node for name in node.output}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self._graph.node:
            for name in dict.fromkeys(node.input):
                self._readers.setdefault(name, []).append(node)
        self._scalars = {
            each.name: float(weight_array(each).reshape(-1)[0])
            for each in self._graph.initializer
            if all(size == 1 for size in each.dims) and each.data_type in _FLOATS
        }
        self._bools = {
            each.name
            for each in self._graph.value_info
            if each.type.tensor_type.elem_type == _BOOL
        }
        self._caches = {each.name: each for each in state_inputs(inputs) if _is_cache(each)}
        self.matches = tuple(self._found())

    @property
    def layers(self) -> int:
        """Number of caches of keys, or of values."""
        return len(self._caches) // 2

    def fuse(self, shapes: Shapes) -> int:
        """Replace the matches whose shapes are those of attention; return how many.

        Args:
            shapes: Of all values that matches read.
        """
        fitting = [each for each in self.matches if self._fits(each, shapes)]
        if not fitting:
            return 0
        fusing = _Fusing(self._model, self._inputs)
        for each in fitting:
            heads, size = shapes[each.query][_HEADS], shapes[each.query][-1]
            fusing.replace(each, self._between(each), int(heads or 0), int(size or 0))
        fusing.end()
        return len(fitting)

    def _found(self) -> Iterator[LayerAttention]:
        taken: set[str] = set()
        for node in self._graph.node:
            found = self._of_softmax(node) or self._of_attention(node)
            if found is None or found.key.output[0] in taken:
                continue
            inside = self._between(found)
            if self._is_closed(found, inside):
                taken |= {found.key.output[0], found.value.output[0]}
                yield found

    def _of_softmax(self, node: onnx.NodeProto) -> LayerAttention | None:
        if node.op_type != "Softmax":
            return None
        scores, bias = node.input[0], ""
        added = self._makers.get(scores)
        if added is not None and added.op_type == "Add":
            for own, other in (added.input, reversed(added.input)):
                if self._product(own) is not None:
                    scores, bias = own, other
        found = self._product(scores)
        output = self._weighted(node.output[0])
        if found is None or output is None:
            return None
        product, scale = found
        query, of_query = self._unscaled(product.input[0])
        key, of_key = self._cache(product.input[1])
        value, of_value = self._cache(output.input[1])
        if key is None or value is None or of_value != 1:
            return None
        scale *= of_query * of_key
        return LayerAttention(query, key, value, bias, is_mask=False, scale=scale, output=output)

    def _of_attention(self, node: onnx.NodeProto) -> LayerAttention | None:
        from onnx import helper

        if node.op_type != "Attention" or node.domain or len(node.output) > 1:
            return None
        given = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        key, of_key = self._cache(node.input[1])
        value, of_value = self._cache(node.input[2])
        if key is None or value is None or (of_key, of_value) != (1, 1) or given.get("softcap"):
            return None
        bias = node.input[3] if len(node.input) > 3 else ""  # noqa: PLR2004  # query, key, value, mask
        is_mask, scale = bias in self._bools, given.get("scale")
        return LayerAttention(
            node.input[0], key, value, bias, is_mask=is_mask, scale=scale, output=node
        )

    def _product(self, scores: str) -> tuple[onnx.NodeProto, float] | None:
        """The MatMul that makes scores, and their factor."""
        value, scale = self._unscaled(scores)
        maker = self._makers.get(value)
        return (maker, scale) if maker is not None and maker.op_type == "MatMul" else None

    def _unscaled(self, value: str) -> tuple[str, float]:
        """The value that scalar factors are multiplied with, and the product of the factors."""
        scale = 1.0
        while (maker := self._makers.get(value)) is not None:
            left, right = (*maker.input, "", "")[:2]
            if maker.op_type == "Mul" and left in self._scalars:
                value, scale = right, scale * self._scalars[left]
            elif maker.op_type == "Mul" and right in self._scalars:
                value, scale = left, scale * self._scalars[right]
            elif maker.op_type == "Div" and right in self._scalars:
                value, scale = left, scale / self._scalars[right]
            else:
                break
        return value, scale

    def _cache(self, value: str) -> tuple[onnx.NodeProto | None, float]:
        """The Concat behind a factor of a product, None for none; and the scalar factors on the way."""
        scale = 1.0
        while True:
            value, factor = self._unscaled(value)
            scale *= factor
            maker = self._makers.get(value)
            if maker is None:
                return None, scale
            if maker.op_type == "Concat":
                return (maker if self._joins(maker) else None), scale
            if maker.op_type not in _LAYOUT:
                return None, scale
            value = maker.input[0]

    def _joins(self, node: onnx.NodeProto) -> bool:
        """Whether a Concat gives a new state of its past and one value."""
        cache = self._caches.get(node.input[0])
        axis = node.attribute[0].i % _RANK
        return (
            cache is not None
            and len(node.input) == 2  # noqa: PLR2004
            and axis == _PAST
            and node.output[0] == cache.fed_by
        )

    def _weighted(self, weights: str) -> onnx.NodeProto | None:
        """The MatMul of a Softmax's result with values; between them may be what makes 0 of NaN."""
        readers = self._readers.get(weights, [])
        if len(readers) == 2:  # noqa: PLR2004  # IsNaN, and the Where that reads both
            chosen = next((each for each in readers if each.op_type == "Where"), None)
            return None if chosen is None else self._weighted(chosen.output[0])
        (reader,) = readers if len(readers) == 1 else (None,)
        is_product = (
            reader is not None and reader.op_type == "MatMul" and reader.input[0] == weights
        )
        return reader if is_product else None

    def _between(self, match: LayerAttention) -> list[onnx.NodeProto]:
        """The nodes that make the output of the caches, those of the caches first, in the graph's order."""
        needed = {match.output.output[0]}
        chosen: list[onnx.NodeProto] = []
        reached = {match.key.output[0], match.value.output[0]}
        for node in self._graph.node:
            if reached & set(node.input):
                reached |= set(node.output)
        for node in reversed(self._graph.node):
            if needed & set(node.output) and reached & set(node.output):
                chosen.append(node)
                needed |= set(node.input)
        return chosen[::-1]

    def _is_closed(self, match: LayerAttention, inside: Sequence[onnx.NodeProto]) -> bool:
        """Whether nothing else reads what is between, nor the caches themselves."""
        own = {id(node) for node in inside}
        outputs = {value.name for value in self._graph.output}
        made = {name for node in inside for name in node.output} - {match.output.output[0]}
        pasts = {match.key.input[0], match.value.input[0]}
        ends = {match.key.output[0], match.value.output[0]}
        return not (made & outputs) - ends and all(
            id(reader) in own for name in made | pasts for reader in self._readers.get(name, ())
        )

    def _fits(self, match: LayerAttention, shapes: Shapes) -> bool:
        assert self._growth is not None
        query, key = shapes.get(match.query, ()), self._caches[match.key.input[0]]
        value = self._caches[match.value.input[0]]
        heads, kept = query[_HEADS : _HEADS + 1], key.shape[_HEADS]
        bias = shapes.get(match.bias, ())
        return (
            len(query) == _RANK
            and isinstance(heads[0], int)
            and isinstance(kept, int)
            and heads[0] % kept == 0
            and query[-1] == key.shape[-1]
            and key.shape == value.shape
            and (not match.bias or _covers(bias, self._growth))
        )


def _is_cache(each: DummyInput) -> bool:
    growth = each.growth
    return growth is not None and len(each.shape) == _RANK and each.shape[_PAST] == growth.axis


def _covers(bias: Sequence[Dimension | None], growth: Growth) -> bool:
    """Whether a bias has a row for each new element, and a column for each of all."""
    return (
        len(bias) == _RANK
        and bias[-2] == growth.by
        and isinstance(bias[-1], str)
        and set(symbols_of(bias[-1])) == {growth.axis, growth.by}
    )


class _Fusing:
    """Replaces matches in one model; what all layers share is computed once."""

    def __init__(self, model: onnx.ModelProto, inputs: Sequence[DummyInput]) -> None:
        from onnx import helper

        growth = growth_in(inputs)
        assert growth is not None
        self._model, self._graph = model, model.graph
        self._sizes = sizes = Sizes(model, inputs)
        self._make = sizes.name
        self._caches = {each.name: each for each in state_inputs(inputs)}
        self._gone: set[int] = set()
        self._biases: dict[str, tuple[str, str]] = {}
        past, new = sizes.of(growth.axis), sizes.of(growth.by)
        batch = sizes.of(next(iter(self._caches.values())).shape[0])
        zero, one = sizes.constant([0]), sizes.constant([1])
        self._past, self._total = past, sizes.node("Add", [past, new], "total")
        last = sizes.node("Expand", [sizes.node("Sub", [self._total, one], "last"), batch], "ends")
        self._ends = sizes.node("Cast", [last], "ends", to=_INT32)
        whole = sizes.node("Squeeze", [self._total], "total")
        self._whole = sizes.node("Cast", [whole], "total", to=_INT32)
        several = [
            sizes.node("Greater", [value, least], "more")
            for value, least in ((batch, one), (new, one), (past, zero))
        ]
        both = sizes.node("And", several[:2], "chunks")
        self._chunks = sizes.node(
            "Squeeze", [sizes.node("And", [both, several[2]], "chunks")], "chunks"
        )
        if all(each.domain != DOMAIN for each in model.opset_import):
            model.opset_import.append(helper.make_opsetid(DOMAIN, 1))

    def replace(
        self, match: LayerAttention, inside: Sequence[onnx.NodeProto], heads: int, size: int
    ) -> None:
        """Put an If with both in the place of the nodes that make a match's output."""
        from onnx import helper

        cache = self._caches[match.key.input[0]]
        kind = helper.np_dtype_to_tensor_dtype(numpy_dtype(cache.dtype))
        ends = [match.output.output[0], match.key.output[0], match.value.output[0]]
        self._gone |= {id(node) for node in inside}
        bias, is_refused = self._bias(match)
        branches = {}
        for name in ("then_branch", "else_branch"):
            inner = [self._make(f"{each}/{name}") for each in ends]
            renamed = dict(zip(ends, inner, strict=True))
            nodes = (
                self._original(match, inside, renamed, in_place=cache.in_place)
                if name == "then_branch"
                else self._fused(match, bias, inner, heads, size)
            )
            values = [helper.make_tensor_value_info(each, kind, None) for each in inner]
            branches[name] = helper.make_graph(list(nodes), self._make(name), [], values)
        name = self._make(f"{ends[0]}/If")
        self._graph.node.append(helper.make_node("If", [is_refused], ends, name=name, **branches))

    def end(self) -> None:
        """Remove what was replaced."""
        keep(self._graph.node, lambda node: id(node) not in self._gone)

    def _fused(
        self, match: LayerAttention, bias: str, ends: Sequence[str], heads: int, size: int
    ) -> Iterator[onnx.NodeProto]:
        """The nodes that end in the output, the new keys and the new values."""
        from onnx import helper

        kept = int(self._caches[match.key.input[0]].shape[_HEADS])
        (past_keys, keys), (past_values, values) = match.key.input, match.value.input
        flat = []
        for value, count in ((match.query, heads), (keys, kept), (values, kept)):
            turned, rows = self._make(f"{value}/turned"), self._make(f"{value}/rows")
            yield helper.make_node("Transpose", [value], [turned], name=turned, perm=_TURN)
            width = self._sizes.constant([0, 0, count * size])
            yield helper.make_node("Reshape", [turned, width], [rows], name=rows)
            flat.append(rows)
        rows, turned = self._make(f"{ends[0]}/rows"), self._make(f"{ends[0]}/turned")
        rotary = ("", "", "")
        yield helper.make_node(
            OPERATOR,
            [*flat, past_keys, past_values, self._ends, self._whole, *rotary, bias],
            [rows, *ends[1:]],
            name=rows,
            domain=DOMAIN,
            num_heads=heads,
            kv_num_heads=kept,
            scale=size**-0.5 if match.scale is None else match.scale,
        )
        shape = self._sizes.constant([0, 0, heads, size])
        yield helper.make_node("Reshape", [rows, shape], [turned], name=turned)
        yield helper.make_node(
            "Transpose", [turned], [ends[0]], name=self._make(ends[0]), perm=_TURN
        )

    def _original(
        self,
        match: LayerAttention,
        inside: Sequence[onnx.NodeProto],
        ends: Mapping[str, str],
        *,
        in_place: bool,
    ) -> Iterator[onnx.NodeProto]:
        """The nodes as they were; of a cache in a buffer, they read what is in it, and keep what is behind that."""
        from onnx import helper

        renamed = dict(ends)
        for node in (match.key, match.value):
            if not in_place:
                continue
            (past, new), present = node.input, ends[node.output[0]]
            names = {each: self._make(f"{past}/{each}") for each in ("held", "all", "behind")}
            first, axis, far = (self._sizes.constant([n]) for n in (0, _PAST, 2**62))
            renamed[node.output[0]] = names["all"]
            yield helper.make_node(
                "Slice", [past, first, self._past, axis], [names["held"]], name=names["held"]
            )
            yield helper.make_node(
                "Concat", [names["held"], new], [names["all"]], name=names["all"], axis=_PAST
            )
            yield helper.make_node(
                "Slice", [past, self._total, far, axis], [names["behind"]], name=names["behind"]
            )
            yield helper.make_node(
                "Concat", [names["all"], names["behind"]], [present], name=present, axis=_PAST
            )
        for node in inside:
            if in_place and (node is match.key or node is match.value):
                continue
            made = onnx.NodeProto()
            made.CopyFrom(node)
            made.input[:] = [renamed.get(name, name) for name in node.input]
            made.output[:] = [renamed.get(name, name) for name in node.output]
            yield made

    def _bias(self, match: LayerAttention) -> tuple[str, str]:
        """The bias of a match, empty for none; and whether the sizes, or a row that hides all elements, are not the node's."""
        if not match.bias:
            return "", self._chunks
        if match.bias not in self._biases:
            sizes, dtype = self._sizes, self._caches[match.key.input[0]].dtype
            bias = match.bias
            if match.is_mask:
                seen, hidden = (sizes.constant(each, dtype) for each in (0.0, _HIDDEN))
                bias = sizes.node("Where", [bias, seen, hidden], "bias")
            axis: dict[str, Any] = {"axes": [-1]}
            inputs = [bias]
            if opset_of(self._model) >= _AXES_ARE_AN_INPUT_FROM:
                axis, inputs = {}, [bias, sizes.constant([-1])]
            largest = sizes.node("ReduceMax", inputs, "largest", **axis)
            least = sizes.node("ReduceMin", [largest], "least", keepdims=0)
            padded = sizes.node("Less", [least, sizes.constant(_HIDDEN / 2, dtype)], "padded")
            self._biases[match.bias] = bias, sizes.node("Or", [padded, self._chunks], "refused")
        return self._biases[match.bias]
