"""Operations on outputs as ONNX operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.onnxkit.processing.chains import PlannedOperation
from onnxbuild.onnxkit.processing.graph_writer import GraphWriter
from onnxbuild.onnxkit.processing.options import NmsOptions, PoolOptions
from onnxbuild.onnxkit.processing.values import ValueType

_LEAST_LENGTH, _LEAST_COUNT = 1e-12, 1e-9
"""torch.nn.functional.normalize's eps; sentence-transformers' least number of tokens."""


def write_on_output(graph: GraphWriter, each: PlannedOperation, labels: Sequence[str]) -> None:
    """Write an operation.

    Args:
        graph: Takes its nodes.
        each: What it takes and gives.
        labels: Of `labels`; else empty.
    """
    takes, gives, options = list(each.takes), tuple(each.gives), each.options
    value = takes[0]
    match each.name:
        case "softmax":
            graph.node("Softmax", value, results=gives, attributes={"axis": -1})
        case "sigmoid":
            graph.node("Sigmoid", value, results=gives)
        case "argmax":
            graph.node("ArgMax", value, results=gives, attributes={"axis": -1, "keepdims": 0})
        case "top_k":
            count = graph.constant([options.k], "int64")
            graph.node("TopK", value, count, results=gives[::-1], attributes={"axis": -1})
        case "threshold":
            kind = each.takes[value].dtype or "float32"
            bound = graph.constant(options.min, kind)
            graph.node("GreaterOrEqual", value, bound, results=gives)  # no NaN is
        case "labels":
            table = graph.constant(labels, "string")
            graph.node("Gather", table, graph.cast(value, "int64"), results=gives)
        case "pool":
            _write_pool(graph, each, options)
        case "l2_normalize":
            _write_l2_normalize(graph, each)
        case "nms":
            _write_nms(graph, each.takes, gives[0], options)
        case _:
            raise AssertionError(each.name)


def _write_pool(graph: GraphWriter, each: PlannedOperation, options: PoolOptions) -> None:
    value, gives = next(iter(each.takes)), tuple(each.gives)
    if options.mode == "cls":
        first = graph.constant(0, "int64")
        graph.node("Gather", value, first, results=gives, attributes={"axis": 1})
        return
    axis = graph.constant([1], "int64")
    kind = each.takes[value].dtype or "float32"
    if options.mask:
        mask = graph.cast(list(each.takes)[1], kind)
        mask = graph.node("Unsqueeze", mask, graph.constant([2], "int64"))
        value = graph.node("Mul", value, mask)
    else:
        shape = graph.node("Shape", value)
        mask = graph.cast(graph.node("Gather", shape, axis), kind)
    total = graph.node("ReduceSum", value, axis, attributes={"keepdims": 0})
    if options.mask:
        mask = graph.node("ReduceSum", mask, axis, attributes={"keepdims": 0})
    least = graph.constant(1e-4 if kind == "float16" else _LEAST_COUNT, kind)
    graph.node("Div", total, graph.node("Max", mask, least), results=gives)


def _write_l2_normalize(graph: GraphWriter, each: PlannedOperation) -> None:
    ((value, kind),) = each.takes.items()
    dtype = kind.dtype or "float32"
    exact = graph.cast(value, "float32")  # squares of float16 overflow
    squares = graph.node(
        "ReduceSum", graph.node("Mul", exact, exact), graph.constant([-1], "int64")
    )
    length = graph.node(
        "Max", graph.node("Sqrt", squares), graph.constant(_LEAST_LENGTH, "float32")
    )
    graph.cast(graph.node("Div", exact, length), dtype, next(iter(each.gives)))


def _write_nms(
    graph: GraphWriter, takes: Mapping[str, ValueType], result: str, options: NmsOptions
) -> None:
    boxes, scores = (
        value if kind.dtype == "float32" else graph.cast(value, "float32")  # it takes no other
        for value, kind in takes.items()
    )
    graph.node(
        "NonMaxSuppression",
        boxes,
        scores,
        graph.constant([options.most], "int64"),
        graph.constant([options.iou], "float32"),
        graph.constant([options.min_score], "float32"),
        results=(result,),
        attributes={"center_point_box": int(options.form == "center")},
    )
