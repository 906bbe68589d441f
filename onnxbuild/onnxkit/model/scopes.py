"""Names and where they are defined: a nested graph sees its own values and those of the graphs around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.graphs import names_defined, names_read_in, subgraphs


class GraphScope:
    """A graph and the scopes around it.

    Args:
        graph: The main graph, or one nested in a node's attributes.
        outer: The scope of the graph that holds the node; None for an outermost graph.
    """

    def __init__(self, graph: onnx.GraphProto, outer: GraphScope | None = None) -> None:
        self.graph = graph
        self.outer = outer

    @cached_property
    def initializers(self) -> Mapping[str, onnx.TensorProto]:
        """The graph's own dense initializers by name, as they were at the first call."""
        return {tensor.name: tensor for tensor in self.graph.initializer}

    @cached_property
    def defined(self) -> set[str]:
        """The names that the graph itself defines, as they were at the first call."""
        return names_defined(self.graph)

    def home(self, name: str) -> GraphScope | None:
        """The innermost scope that defines a value; None for inputs of a function."""
        scope: GraphScope | None = self
        while scope is not None and name not in scope.defined:
            scope = scope.outer
        return scope

    def initializer(self, name: str) -> onnx.TensorProto | None:
        """The dense initializer that a node of this graph reads under a name; None for any other value."""
        home = self.home(name)
        return None if home is None else home.initializers.get(name)


def scopes(model: onnx.ModelProto) -> Iterator[GraphScope]:
    """The main graph and every graph nested in it, outermost first; no functions, which capture nothing."""
    yield from _below(GraphScope(model.graph))


def name_maker(taken: set[str]) -> Callable[[str], str]:
    """Return a function that makes a name from a stem, unlike all in `taken`, and adds it there.

    Args:
        taken: Names in use; changed.
    """
    counts: dict[str, int] = {}

    def make(stem: str) -> str:
        name = stem
        while name in taken:
            name = f"{stem}_{counts.get(stem, 0)}"
            counts[stem] = counts.get(stem, 0) + 1
        taken.add(name)
        return name

    return make


def all_names(model: onnx.ModelProto) -> set[str]:
    """Return every name that the main graph and the graphs nested in it define."""
    found: set[str] = set()
    for scope in scopes(model):
        found |= names_defined(scope.graph)
    return found


def separate_names(model: onnx.ModelProto) -> None:
    """Rename values of nested graphs so that each name stands for one value, in place.

    Tools of ONNX Runtime keep one table of names for all graphs: its fp16 converter fails where two
    branches have an initializer of one name. The main graph's names stay, and of several nested
    values with one name the first keeps it.
    """
    seen = names_defined(model.graph)
    make = name_maker(all_names(model))
    for node in model.graph.node:
        for inner in subgraphs(node):
            _separate(inner, {}, seen, make)


def rename_reads(node: onnx.NodeProto, renamed: Mapping[str, str]) -> None:
    """Let a node and the graphs nested in it read other values, in place.

    Args:
        renamed: Name -> the name to read instead. A nested graph's own value of such a name stays.
    """
    for n, name in enumerate(node.input):
        if name in renamed:
            node.input[n] = renamed[name]
    rename_captures(node, renamed)


def rename_captures(node: onnx.NodeProto, renamed: Mapping[str, str]) -> None:
    """Rename reads as `rename_reads` does, but only in the graphs nested in a node."""
    for inner in subgraphs(node):
        own = names_defined(inner)
        left = {name: other for name, other in renamed.items() if name not in own}
        if not left:
            continue
        for value in inner.output:
            value.name = left.get(value.name, value.name)
        for each in inner.node:
            rename_reads(each, left)


def _below(scope: GraphScope) -> Iterator[GraphScope]:
    yield scope
    for node in scope.graph.node:
        for inner in subgraphs(node):
            yield from _below(GraphScope(inner, scope))


def _separate(
    graph: onnx.GraphProto, renamed: Mapping[str, str], seen: set[str], make: Callable[[str], str]
) -> None:
    """Rename what a nested graph defines, and what it reads of the graphs around it.

    Args:
        renamed: Names of the values around it -> what they are called now.
        seen: Names that are in use already; gets this graph's.
        make: See `name_maker`.
    """
    own = sorted(names_defined(graph))
    names = {name: other for name, other in renamed.items() if name not in own}
    names.update({name: make(name) for name in own if name in seen})
    seen.update(names.get(name, name) for name in own)
    fields: Sequence[Sequence[onnx.ValueInfoProto | onnx.TensorProto]] = (
        graph.input, graph.output, graph.value_info, graph.initializer,
        [each.values for each in graph.sparse_initializer],
    )  # fmt: skip
    for field in fields if names else ():
        for each in field:
            each.name = names.get(each.name, each.name)
    for node in graph.node:
        for repeated in (node.input, node.output) if names else ():
            for n, name in enumerate(repeated):
                repeated[n] = names.get(name, name)
        for inner in subgraphs(node):
            _separate(inner, names, seen, make)


def show_captures(model: onnx.ModelProto) -> dict[str, str]:
    """Let nested graphs read what main-graph nodes make through an Identity, in place.

    ONNX Runtime's quantizers take a value that no node of the main graph reads for unused: the QDQ
    quantizer merges a Relu into the node before it, and the dynamic one leaves a Gather's output in
    8 bits.

    Args:
        model: Sorted topologically, its names separate (see `scopes.separate_names`).

    Returns: What the nested graphs read now -> what they read before, for `hide_captures`.
    """
    graph = model.graph
    made = {name for node in graph.node for name in node.output}
    make = name_maker(all_names(model))
    shown: dict[str, str] = {}
    for n in reversed(range(len(graph.node))):
        captured: set[str] = set()
        for inner in subgraphs(graph.node[n]):
            captured |= names_read_in(inner) - names_defined(inner)
        renamed = {name: make(f"{name}/captured") for name in sorted(captured & made)}
        rename_captures(graph.node[n], renamed)
        for name, value in renamed.items():
            graph.node.insert(n, onnx.helper.make_node("Identity", [name], [value], name=value))
            shown[value] = name
    return shown


def hide_captures(model: onnx.ModelProto, shown: Mapping[str, str]) -> None:
    """Take the Identity nodes of `show_captures` out again, in place.

    Nested graphs read the value as it was where it is still there, else what the Identity reads.

    Args:
        model: What a quantizer made of it.
        shown: From `show_captures`.
    """
    graph = model.graph
    there = names_defined(graph)
    renamed = {}
    for n in reversed(range(len(graph.node))):
        node = graph.node[n]
        if node.op_type == "Identity" and node.output[0] in shown:
            before = shown[node.output[0]]
            renamed[node.output[0]] = before if before in there else node.input[0]
            del graph.node[n]
    for node in graph.node:
        rename_captures(node, renamed)
