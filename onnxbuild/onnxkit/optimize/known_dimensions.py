"""Sizes that a graph computes from shapes of its values, computed from its inputs instead, once for all nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.core.axis import Dimension, Point, size_at, symbols_of
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.data.states import growth_in
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import drop_unread
from onnxbuild.onnxkit.model.model_files import weight_array
from onnxbuild.onnxkit.model.scopes import GraphScope, all_names, name_maker, rename_reads
from onnxbuild.onnxkit.model.tensor_types import numpy_dtype
from onnxbuild.onnxkit.sessions.run import PREFIX, ValueProbe, probed

Shapes = Mapping[str, tuple[Dimension | None, ...]]
"""Value -> its sizes, in terms of the recipe's axes; None for one that is something else."""


def observed_shapes(
    model: onnx.ModelProto,
    values: Sequence[str],
    inputs: Sequence[DummyInput],
    points: Sequence[Point],
    *,
    scratch: Path,
    where: str,
) -> Shapes:
    """Find the shapes of values by running a model at points whose sizes differ.

    A size is taken for a number, an axis or a sum of the inputs' if it is that at every point.

    Args:
        model: Its weights loaded or mapped; it is used up.
        values: Names in the main graph.
        points: At the first two all axes differ.

    Raises:
        StepError: ONNX Runtime fails.
    """
    feeds = (make_feeds(inputs, each.sizes, f"shape:{each.name}") for each in points)
    probes = {name: _shape_probe(n, name) for n, name in enumerate(values)}
    runs = list(probed(model, probes, feeds, scratch=scratch, where=where)) if probes else []
    known = dict.fromkeys(d for each in inputs for d in each.shape if isinstance(d, str))

    def dimension(sizes: Sequence[int]) -> Dimension | None:
        if len(set(sizes)) == 1:
            return sizes[0]
        pairs = list(zip(points, sizes, strict=True))
        fitting = (d for d in known if all(size_at(d, p.sizes) == size for p, size in pairs))
        return next(fitting, None)

    found: dict[str, tuple[Dimension | None, ...]] = {}
    for name in values:
        shapes = [[int(size) for size in run[name][0]] for run in runs]
        if len({len(each) for each in shapes}) == 1:
            found[name] = tuple(dimension(sizes) for sizes in zip(*shapes, strict=True))
    return found


def _shape_probe(number: int, value: str) -> ValueProbe:
    from onnx import TensorProto, helper

    shape, sizes = f"{PREFIX}/shape_{number}", f"{PREFIX}/sizes_{number}"
    nodes = (
        helper.make_node("Shape", [value], [shape]),
        helper.make_node("Cast", [shape], [sizes], to=TensorProto.FLOAT),
    )
    return ValueProbe(nodes, (), (sizes,))


class Sizes:
    """Nodes at the beginning of a graph that give sizes of the recipe's axes, added when one is asked for.

    What is in a state is counted without it, by an input whose shape has a sum with it, where there is one: the state
    may be a buffer that is longer.

    Args:
        model: Gets nodes and constants appended; `canonicalize` sorts them.
    """

    def __init__(self, model: onnx.ModelProto, inputs: Sequence[DummyInput]) -> None:
        self._graph = model.graph
        self._inputs = inputs
        self._growth = growth_in(inputs)
        self.name = name_maker(all_names(model))
        self._known: dict[tuple[Dimension, bool], str] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def of(self, dimension: Dimension, *, scalar: bool = False) -> str:
        """The name of an int64 value of shape [1], or [] for a scalar.

        Raises:
            LookupError: No input has the axis.
        """
        key = (dimension, scalar)
        if key not in self._known:
            self._known[key] = self._made(dimension, scalar=scalar)
        return self._known[key]

    def shape(self, dimensions: Sequence[Dimension]) -> str:
        """The name of an int64 value of shape [len(dimensions)].

        Raises:
            LookupError: No input has one of the axes.
        """
        if all(isinstance(each, int) for each in dimensions):
            return self.constant([int(each) for each in dimensions])
        if len(dimensions) == 1:
            return self.of(dimensions[0])
        return self.node("Concat", [self.of(each) for each in dimensions], "shape", axis=0)

    def constant(self, value: float | Sequence[int], dtype: str = "int64") -> str:
        """The name of a constant; equal ones are one."""
        from onnx import numpy_helper

        array = np.array(value, numpy_dtype(dtype))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.name("onnxbuild/constant")
            self._graph.initializer.append(numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def node(self, operator: str, inputs: Sequence[str], stem: str, **attributes: object) -> str:
        """The name of a new node's output."""
        from onnx import helper

        name = self.name(f"onnxbuild/{stem}")
        made = helper.make_node(operator, inputs, [name], name=name, **attributes)
        self._graph.node.append(made)
        return name

    def _made(self, dimension: Dimension, *, scalar: bool) -> str:
        if scalar:
            if isinstance(dimension, int):
                return self.constant(dimension)
            return self.node("Squeeze", [self.of(dimension)], "scalar")
        if isinstance(dimension, int):
            return self.constant([dimension])
        growth = self._growth
        if growth is not None and dimension == growth.axis:
            total = [
                d
                for i in self._inputs
                for d in i.shape
                if symbols_of(d) == (growth.axis, growth.by)
            ]
            if total:
                return self.node("Sub", [self.of(total[0]), self.of(growth.by)], growth.axis)
        name, axis = next(
            (each.name, each.shape.index(dimension))
            for each in sorted(self._inputs, key=lambda each: bool(each.fed_by))
            if dimension in each.shape
        )
        shape = self.node("Shape", [name], f"shape_of_{name}")
        return self.node("Gather", [shape, self.constant([axis])], "size", axis=0)


def shape_readers(model: onnx.ModelProto) -> list[str]:
    """The values of the main graph whose shapes its nodes read."""
    return list(dict.fromkeys(n.input[0] for n in model.graph.node if n.op_type == "Shape"))


def settle_dimensions(model: onnx.ModelProto, shapes: Shapes, sizes: Sizes) -> None:
    """Let nodes of the main graph read sizes that are known from `sizes`, in place.

    Args:
        shapes: Of values whose shapes are read.
        sizes: Of this model.
    """
    from onnx import helper

    scope = GraphScope(model.graph)
    nodes = list(model.graph.node)
    read: dict[str, tuple[Dimension | None, ...]] = {}
    renamed: dict[str, str] = {}
    outputs = {value.name for value in model.graph.output}
    for node in nodes:
        name = node.output[0] if node.output else ""
        if name in outputs:
            continue
        if node.op_type == "Shape" and node.input[0] in shapes:
            given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            found = shapes[node.input[0]][given.get("start", 0) : given.get("end")]
            read[name] = found
            if None not in found:
                renamed[name] = sizes.shape([d for d in found if d is not None])
        elif node.op_type == "Gather" and node.input[0] in read:
            index = scope.initializer(node.input[1])
            places = None if index is None else weight_array(index)
            if places is None or places.size != 1:
                continue
            dimension = read[node.input[0]][int(places.reshape(-1)[0])]
            if dimension is not None:
                renamed[name] = sizes.of(dimension, scalar=places.ndim == 0)
    for node in nodes:
        rename_reads(node, renamed)
    drop_unread(model.graph)
