"""Give operators on texts a locale that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.graphs import all_nodes, keep

if TYPE_CHECKING:
    import onnx

_C, _C_UNICODE = "C", "C.UTF-8"
"""Locales that every machine has, and that Linux has."""

_NORMALIZER, _DEFAULT = "StringNormalizer", b"en_US"


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
