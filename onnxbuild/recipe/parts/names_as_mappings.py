"""Lists of names in the place of mappings whose options may all be left out: `packages: [triton, web]`."""

from __future__ import annotations

from onnxbuild.catalog import SECTIONS
from onnxbuild.document.node import Member, Node, mapping


def with_mappings(root: Node) -> Node:
    """Return a recipe with each such list written out: `packages: {triton: {}, web: {}}`.

    A list that names one twice, or holds anything but names, is left for the schema to refuse.
    """
    members = {
        key: Member(each.at, _written_out(each.node)) if _takes_names(key) else each
        for key, each in root.members.items()
    }
    return mapping(members, root.at)


def _takes_names(key: str) -> bool:
    return key in SECTIONS and SECTIONS[key].takes_names


def _written_out(node: Node) -> Node:
    names = [item.value for item in node.items if isinstance(item.value, str)]
    if not names or len(set(names)) < len(node.items):
        return node
    return mapping(
        {
            name: Member(item.at, mapping({}, item.at))
            for name, item in zip(names, node.items, strict=True)
        },
        node.at,
    )
