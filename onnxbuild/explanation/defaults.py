"""Defaults of what a recipe does not write, in the form in which it would be written."""

from collections.abc import Mapping
from typing import Any

from onnxbuild.catalog import SECTIONS
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import ONNX, Location, Recipe
from onnxbuild.core.target import CPU
from onnxbuild.document.node import Member, Node, mapping, node_of
from onnxbuild.document.parts import format_nodes
from onnxbuild.recipe.parts.keys import PARTS
from onnxbuild.recipe.parts.parts import variant_nodes
from onnxbuild.recipe.templates.extend import merge

DEFAULT = Location("default", 0, 0)
"""The place of what nobody wrote."""


def with_defaults(root: Node, recipe: Recipe) -> Node:
    """The recipe's tree over the defaults, its short forms written out; keys in one order.

    Args:
        root: As it was understood.
        recipe: What it was parsed to.
    """
    members = dict(root.members)
    for key, node in _written_out(root).items():
        members[key] = Member(members[key].at if key in members else node.at, node)
    merged = merge(node_of(_defaults(recipe), DEFAULT), mapping(members, root.at))
    return ordered(merged)


def ordered(root: Node) -> Node:
    """The same keys in the order of the reference page."""
    keys = [key for key in (*PARTS, *SECTIONS) if key in root.members]
    rest = [key for key in root.members if key not in keys]
    return mapping({key: root.members[key] for key in dict.fromkeys((*keys, *rest))}, root.at)


def _written_out(root: Node) -> dict[str, Node]:
    """Key -> value, where a plain word or a list stands for a mapping."""
    found: dict[str, Node] = {}
    quantization = root.child("quantization")
    if quantization is not None:
        variants = {
            name: Member(at, node if node.members else _of_one("mode", node))
            for name, (at, node) in variant_nodes(root).items()
        }
        found["quantization"] = mapping(variants, quantization.at)
    for name, section in SECTIONS.items():
        node = root.child(name)
        if node is not None and isinstance(node.value, str):
            found[name] = _of_one(section.short, node)
    formats = root.child("formats")
    if formats is not None and formats.items:
        found["formats"] = mapping(
            {name: Member(at, Node(at, {})) for name, (at, _) in format_nodes(root).items()},
            formats.at,
        )
    return found


def _of_one(key: str, node: Node) -> Node:
    return mapping({key: Member(node.at, node)}, node.at)


def _defaults(recipe: Recipe) -> dict[str, Any]:
    """Key -> value of all that has one; what is not set has none."""
    formats: dict[str, Any] = {each.name: _set(to_json(each.options)) for each in recipe.formats}
    formats = {ONNX: {}, **formats} if recipe.variants else formats
    return {
        "frontend": recipe.frontend,
        **({"outputs": []} if not recipe.outputs else {}),
        "dynamic_axes": {
            axis.name: {key: value for key, value in to_json(axis).items() if key != "name"}
            for axis in recipe.axes
        },
        "opset": recipe.opset,
        "quantization": {
            each.name: {"mode": each.mode, **_set(to_json(each.options) or {})}
            for each in recipe.variants
        },
        "formats": formats,
        "providers": [CPU],
        **{name: _set(to_json(each)) for name, each in recipe.sections.items()},
    }


def _set(value: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping without what is not set, at any depth."""
    found = {
        key: _set(each) if isinstance(each, Mapping) else each
        for key, each in value.items()
        if each is not None
    }
    return {key: each for key, each in found.items() if each != {} or value[key] == {}}
