"""Write default axes out, in place: onnx's shape inference refuses the operator whose function reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_nodes

if TYPE_CHECKING:
    import onnx

_DOMAINS = ("", "ai.onnx")
_DEFAULTS = {"MeanVarianceNormalization": ("axes", (0, 2, 3))}
"""Operator -> its attribute, and the value that its schema has for it (onnx/docs/Operators.md)."""


def write_out_default_axes(model: onnx.ModelProto) -> None:
    """Give each node of such an operator that has no axes those that it stands for."""
    from onnx import helper

    for node in all_nodes(model):
        name, default = _DEFAULTS.get(node.op_type, ("", ()))
        if name and node.domain in _DOMAINS and name not in {each.name for each in node.attribute}:
            node.attribute.append(helper.make_attribute(name, default))
