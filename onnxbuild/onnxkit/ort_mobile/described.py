"""Description of a model in ORT format by itself: inputs, outputs, sizes. Imports little: `verify` calls it in a process of its own."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.ahead_of_time.ort_canonical import ort_graph
from onnxbuild.onnxkit.model.inspect import NUMPY_WORDS, dtype_name

_TENSOR, _VALUE = 1, 1
"""ort.fbs: TypeInfoValue.tensor_type, DimensionValueType.VALUE."""

DESCRIBE = f"{__name__}:described"
"""Name of `described`, for a process of its own: the file may be anybody's."""


def described(path: str) -> dict[str, Any]:
    """Return what a `.ort` file says of itself, as JSON.

    Returns: `inputs` and `outputs`, each a list of (name, dtype, shape; -1 for a size that varies, None for an
        unknown shape), and `sizes`, from `sizes_of`.

    Raises:
        ValueError: It is no such file.
    """
    graph = ort_graph(Path(path).read_bytes())
    types = {
        each.Name(): each.Type() for each in map(graph.NodeArgs, range(graph.NodeArgsLength()))
    }
    inputs = map(graph.Inputs, range(graph.InputsLength()))
    outputs = map(graph.Outputs, range(graph.OutputsLength()))
    return {
        "inputs": [_port(name, types.get(name)) for name in inputs],
        "outputs": [_port(name, types.get(name)) for name in outputs],
        "sizes": sizes_of(Path(path)),
    }


def _port(name: bytes, kind: Any) -> tuple[str, str, list[int] | None]:
    from ort_flatbuffers_py.fbs.TensorTypeAndShape import TensorTypeAndShape

    if kind is None or kind.ValueType() != _TENSOR:
        return name.decode(), "", None
    tensor, table = TensorTypeAndShape(), kind.Value()
    tensor.Init(table.Bytes, table.Pos)
    shape = tensor.Shape()
    dims = () if shape is None else map(shape.Dim, range(shape.DimLength()))
    sizes = [_size(each.Value()) for each in dims]
    return name.decode(), _dtype_of(tensor.ElemType()), None if shape is None else sizes


def _size(value: Any) -> int:
    return int(value.DimValue()) if value is not None and value.DimType() == _VALUE else -1


def sizes_of(path: Path) -> dict[str, Any]:
    """Return the sizes of a `.ort` file.

    A tensor that several nodes read counts for the first of them.

    Returns: `file_bytes`, `weights_bytes`, `graph_bytes` (all but weights), `operators` (each with `operator`,
        `nodes`, `weights_bytes`; most bytes first), `weights_bytes_by_dtype`.

    Raises:
        ValueError: It is no such file.
    """
    content = path.read_bytes()
    nodes: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    by_dtype: Counter[str] = Counter()
    for operator, tensors in _nodes(ort_graph(content), {}):
        nodes[operator] += 1
        for dtype, size in tensors:
            weights[operator] += size
            by_dtype[dtype] += size
    total = sum(weights.values())
    rows = [
        {"operator": name, "nodes": count, "weights_bytes": weights[name]}
        for name, count in sorted(nodes.items(), key=lambda item: (-weights[item[0]], item[0]))
    ]
    return {
        "file_bytes": len(content),
        "weights_bytes": total,
        "graph_bytes": len(content) - total,
        "operators": rows,
        "weights_bytes_by_dtype": dict(sorted(by_dtype.items())),
    }


def _dtype_of(element_type: int) -> str:
    """The word for an element type, as `dtype_name` has it; without onnx for those that ort.fbs names.

    Only after `ort_graph`, which lets the names be found.
    """
    from ort_flatbuffers_py.fbs.TensorDataType import TensorDataType

    for name, number in vars(TensorDataType).items():
        if number == element_type and name.isupper():
            word = str(name).lower()
            return NUMPY_WORDS.get(word, word)
    return dtype_name(element_type)


def _nodes(
    graph: Any, outer: Mapping[str, list[tuple[str, int]]]
) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """(operator, weights that no node before it read) of each node of a graph and of those in it.

    Args:
        outer: Name -> what is left of a tensor of the graphs around it: one entry, or none once it is read.
    """
    own: dict[str, list[tuple[str, int]]] = {}
    for tensor in (graph.Initializers(n) for n in range(graph.InitializersLength())):
        own[_text(tensor.Name())] = [(_dtype_of(tensor.DataType()), _bytes(tensor))]
    seen = {**outer, **own}
    for node in (graph.Nodes(n) for n in range(graph.NodesLength())):
        read = [seen.get(_text(node.Inputs(n)), []) for n in range(node.InputsLength())]
        tensors = [each.pop() for each in read if each]
        yield f"{_text(node.Domain()) or 'ai.onnx'}:{_text(node.OpType())}", tensors
        for attribute in (node.Attributes(n) for n in range(node.AttributesLength())):
            inner = [attribute.G()] if attribute.G() is not None else []
            inner += [attribute.Graphs(n) for n in range(attribute.GraphsLength())]
            for each in inner:
                yield from _nodes(each, seen)


def _bytes(tensor: Any) -> int:
    texts = (tensor.StringData(n) for n in range(tensor.StringDataLength()))
    return int(tensor.RawDataLength()) + sum(len(each or b"") for each in texts)


def _text(content: bytes | None) -> str:
    return (content or b"").decode()
