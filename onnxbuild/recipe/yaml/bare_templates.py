"""Templates that are not in quotes: `{{ n }}`, which YAML reads as a mapping with a mapping as its key."""

from __future__ import annotations

import re

from onnxbuild.document.node import Node

_TEMPLATE = re.compile(r"\{\{.*?\}\}")
_COLON = re.compile(r"\s*:(\s|$)")
_COMMENT = re.compile(r"\s+#.*$")


def is_bare_template(key: Node) -> bool:
    """Return whether a mapping's key is what stands between the braces of a template: names without values."""
    members = key.members.values()
    return bool(members) and all(each.node.value is None for each in members)


def quoted_template(line: str, start: int) -> str:
    """Return the value that is meant, in quotes; empty if the template does not end in this line.

    Args:
        line: It stands here, whole.
        start: Where its first brace is, from 0.
    """
    rest = line[start:]
    found = _TEMPLATE.match(rest)
    if found is None:
        return ""
    in_brackets = any(each in line[:start] for each in "[{")
    is_key = _COLON.match(rest, found.end()) is not None
    value = found[0] if in_brackets or is_key else _COMMENT.sub("", rest).rstrip(" ,")
    return f"'{value}'" if '"' in value else f'"{value}"'
