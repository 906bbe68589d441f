"""An ONNX graph as plain nodes and values: what a picture is made from, without its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeWeight:
    """A constant that a node reads.

    Attributes:
        name: As in the graph.
        dtype: `float32`, `int8`, ...
        dims: Its shape.
        bytes: Of its elements.
        parameters: Its elements.
        is_counted: Whether this node is the first that reads it: sums count it once.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    bytes: int
    parameters: int
    is_counted: bool


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a graph.

    Attributes:
        number: Its place in the graph, which is its identity.
        name: May be empty, or another node's too.
        op_type: `MatMul`.
        domain: Empty for ONNX's own.
        reads: Values that it reads, and the graphs in it: no constants.
        makes: Values.
        weights: Constants that it reads.
        precision: `fp32`, `fp16`, `int8`, `int4`, ..., or `other` where it computes no such numbers.
        scopes: What the exporter says of its place in the modules, outermost first.
        bodies: Graphs that it holds (If, Loop, Scan).
        function: The function of the model that it calls, or empty.
        constants: Constant nodes that only it reads first; counted, and not drawn.
        is_dead: Whether no output of the graph follows from it.
    """

    number: int
    name: str
    op_type: str
    domain: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    weights: tuple[NodeWeight, ...]
    precision: str
    scopes: tuple[str, ...]
    bodies: tuple[NodeGraph, ...]
    function: str
    constants: int
    is_dead: bool


@dataclass(frozen=True, slots=True)
class NodeGraph:
    """A graph: the model's, a body of a node, or a function's.

    Attributes:
        name: `then_branch`, or a function's name; empty for the model's.
        inputs: Values that come from outside; of the model's no constants.
        captured: Those of a body that it reads of the graphs around it.
        outputs: Values.
        nodes: In the graph's order.
        types: Value -> `float32[batch, 384]`, where it is known.
        unread: Constants that no node reads, and their bytes.
    """

    name: str
    inputs: tuple[str, ...]
    captured: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[GraphNode, ...]
    types: Mapping[str, str]
    unread: tuple[NodeWeight, ...] = ()
