"""Write out what ONNX's or ONNX Runtime's own tools would refuse, in place: default axes, sparse weights, locales."""

from __future__ import annotations

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes, keep

_DOMAINS = ("", "ai.onnx")

_DEFAULTS = {"MeanVarianceNormalization": ("axes", (0, 2, 3))}
"""Operator -> its attribute, and the value that its schema has for it (onnx/docs/Operators.md)."""

_EXTERNAL = 1
"""TensorProto.EXTERNAL: the values are in another file."""

_C, _C_UNICODE = "C", "C.UTF-8"
"""Locales that every machine has, and that Linux has."""

_NORMALIZER, _DEFAULT = "StringNormalizer", b"en_US"


def write_out_default_axes(model: onnx.ModelProto) -> None:
    """Give each node of such an operator that has no axes those that it stands for."""
    from onnx import helper

    for node in all_nodes(model):
        name, default = _DEFAULTS.get(node.op_type, ("", ()))
        if name and node.domain in _DOMAINS and name not in {each.name for each in node.attribute}:
            node.attribute.append(helper.make_attribute(name, default))


def write_out_sparse_weights(model: onnx.ModelProto) -> None:
    """Put a dense initializer of the same name in place of each sparse one.

    Args:
        model: Sparse weights whose values are in another file stay as they are.
    """
    from onnx import numpy_helper

    for graph in all_graphs(model):
        left = []
        for each in graph.sparse_initializer:
            if _EXTERNAL in (each.values.data_location, each.indices.data_location):
                left.append(each)
            else:
                graph.initializer.append(numpy_helper.from_array(_dense(each), each.values.name))
        if len(left) < len(graph.sparse_initializer):
            del graph.sparse_initializer[:]
            graph.sparse_initializer.extend(left)


def _dense(tensor: onnx.SparseTensorProto) -> np.ndarray:
    """Its values at their places, zeros elsewhere; places are counted through, or a row of coordinates each."""
    from onnx import numpy_helper

    values, places = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
    found: np.ndarray = np.zeros(tuple(tensor.dims), values.dtype)
    if places.ndim == 1:
        found.reshape(-1)[places] = values
    else:
        found[tuple(places.T)] = values
    return found


def settle_locales(model: onnx.ModelProto) -> None:
    """Write a locale at each StringNormalizer that has none but the default, en_US.UTF-8, in place: few machines have that.

    Letters beyond ASCII need another than C for their case; where no word of the vocabulary has such, they
    decide nothing.
    """
    nodes = list(all_nodes(model))
    missing = [
        node
        for node in nodes
        if node.op_type == _NORMALIZER and _locale_of(node).startswith(_DEFAULT)
    ]
    texts = [each for node in nodes for attribute in node.attribute for each in attribute.strings]
    locale = _C if texts and all(text.isascii() for text in texts) else _C_UNICODE
    for node in missing:
        keep(node.attribute, lambda each: each.name != "locale")
        node.attribute.add(name="locale", type=3, s=locale.encode())


def _locale_of(node: onnx.NodeProto) -> bytes:
    return next((each.s for each in node.attribute if each.name == "locale"), _DEFAULT)
