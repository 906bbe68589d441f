"""Description of a model in ORT format by itself: inputs, outputs, sizes. Imports little: `verify` calls it in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.ahead_of_time.ort_canonical import ort_graph
from onnxbuild.onnxkit.ort_mobile.sizes import dtype_of, sizes_of

_TENSOR, _VALUE = 1, 1
"""ort.fbs: TypeInfoValue.tensor_type, DimensionValueType.VALUE."""

DESCRIBE = f"{__name__}:described"
"""Name of `described`, for a process of its own: the file may be anybody's."""


def described(path: str) -> dict[str, Any]:
    """Return what a `.ort` file says of itself, as JSON.

    Args:
        path: The file.

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
    return name.decode(), dtype_of(tensor.ElemType()), None if shape is None else sizes


def _size(value: Any) -> int:
    return int(value.DimValue()) if value is not None and value.DimType() == _VALUE else -1
