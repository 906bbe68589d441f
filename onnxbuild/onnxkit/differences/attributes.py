"""Differences between the attributes of two nodes; long lists and tensors are compared by element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.differences.arrays import (
    WIDEST,
    ArrayDifference,
    compare_arrays,
    cut,
    shown,
    shown_apart,
)
from onnxbuild.onnxkit.differences.weights import compare_weights, weight_type
from onnxbuild.onnxkit.model.external_data import weight_array
from onnxbuild.onnxkit.model.inspect import dtype_name

if TYPE_CHECKING:
    import onnx

_TYPES = ("to", "dtype")
"""Attributes of Cast, RandomNormal and others that name a type by its number."""


@dataclass(frozen=True, slots=True)
class AttributeChanged:
    """An attribute of a node that is in both graphs.

    Attributes:
        node: Its label in the one graph.
        name: Name of the attribute; `name[2]` for one of several tensors.
        old: Value as text; its type and shape if it is too long for a message. Empty if it is new.
        new: The other's value, likewise; empty if it is gone.
        values: Difference of the two values, if `old` and `new` are one type and shape; else None.
    """

    node: str
    name: str
    old: str
    new: str
    values: ArrayDifference | None = None


@dataclass(frozen=True, slots=True)
class _FromFunction:
    """The value is that of the function's attribute of this name."""

    name: str


def attribute_changes(
    ones: Iterable[onnx.AttributeProto], others: Iterable[onnx.AttributeProto], node: str
) -> Iterator[AttributeChanged]:
    """Yield what differs between the attributes of two nodes; two subgraphs are not looked into.

    Args:
        ones: Attributes of the one node.
        others: Attributes of the other.
        node: Label of the node, for messages.
    """
    olds, news = dict(_values(ones)), dict(_values(others))
    for name in dict.fromkeys((*olds, *news)):
        if name not in news:
            yield AttributeChanged(node, name, _text(name, olds[name]), "")
        elif name not in olds:
            yield AttributeChanged(node, name, "", _text(name, news[name]))
        else:
            found = _change(node, name, olds[name], news[name])
            if found is not None:
                yield found


def _values(attributes: Iterable[onnx.AttributeProto]) -> Iterator[tuple[str, Any]]:
    """(name, value) of each: lists of numbers and text as arrays, tensors of a list one by one."""
    import numpy as np
    import onnx

    kinds = onnx.AttributeProto
    for each in attributes:
        if each.ref_attr_name:
            yield each.name, _FromFunction(each.ref_attr_name)
        elif each.type == kinds.FLOATS:
            yield each.name, np.array(each.floats, np.float32)
        elif each.type == kinds.INTS:
            yield each.name, np.array(each.ints, np.int64)
        elif each.type == kinds.STRINGS:
            texts: np.ndarray = np.empty(len(each.strings), object)
            texts[:] = [_decoded(text) for text in each.strings]
            yield each.name, texts
        else:
            value = onnx.helper.get_attribute_value(each)
            if isinstance(value, list):
                yield from ((f"{each.name}[{n}]", item) for n, item in enumerate(value))
            else:
                yield each.name, value


def _change(node: str, name: str, old: Any, new: Any) -> AttributeChanged | None:
    import numpy as np
    import onnx

    graph = onnx.GraphProto
    if isinstance(old, graph) and isinstance(new, graph):
        return None
    texts = _text(name, old), _text(name, new)
    weights = onnx.TensorProto, onnx.SparseTensorProto
    values = None
    if isinstance(old, weights) and isinstance(new, weights):
        if weight_type(old) == weight_type(new):
            values = compare_weights(old, new)
            if values is None:
                return None  # written in another way
    elif isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if _list_type(old) == _list_type(new):
            values = compare_arrays(old, new)
            if values is None:
                return None
    elif type(old) is type(new) and old == new:
        return None
    elif isinstance(old, bytes) and isinstance(new, bytes) and max(map(len, (old, new))) > WIDEST:
        texts = shown_apart(_decoded(old), _decoded(new))
    is_shown = texts[0] != texts[1]
    return AttributeChanged(node, name, *texts, None if is_shown else values)


def _text(name: str, value: Any) -> str:
    """A value; type and shape alone where it is long."""
    import numpy as np
    import onnx

    if isinstance(value, _FromFunction):
        return f"the function's {value.name}"
    if isinstance(value, onnx.TensorProto):
        array = weight_array(value)
        own = weight_type(value)
        return f"{own} {array.tolist()!r}" if _is_short(array) else own
    if isinstance(value, onnx.SparseTensorProto):
        return weight_type(value)
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if _is_short(value) else _list_type(value)
    if isinstance(value, onnx.GraphProto):
        count = len(value.node)
        return f"a graph of {count} node{'s' if count != 1 else ''}"
    if isinstance(value, onnx.TypeProto):
        return str(onnx.helper.printable_type(value))
    if name in _TYPES and isinstance(value, int):
        return dtype_name(value)
    if isinstance(value, bytes):
        return cut(_decoded(value))
    return shown(value)


def _is_short(array: Any) -> bool:
    """Return whether all elements fit in a message."""
    return array.size < WIDEST and len(repr(array.tolist())) <= WIDEST


def _list_type(array: Any) -> str:
    return f"{'string' if array.dtype.hasobject else array.dtype} {list(array.shape)}"


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
