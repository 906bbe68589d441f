"""Write YAML that the strict reader takes as it was meant, with comments."""

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping

from onnxbuild.core.recipe import Location
from onnxbuild.document.node import Node, Scalar, has_template
from onnxbuild.recipe.yaml.scalars import resolve

WIDTH = 90
"""Most characters of a mapping or a list in one line, without its comment."""

_REMARKED_WIDTH, _REMARK_MIN = 110, 30
"""Most characters of a line with its comment; comments that are shorter stand at its end in any case."""

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./@+*-]*(:[A-Za-z0-9_]+)*")
_INDENT = "  "


def scalar_text(value: Scalar) -> str:
    """A scalar without quotes where they change nothing; a template's marks are kept from being one."""
    if isinstance(value, str) and has_template(value):
        value = "{{ " + json.dumps(value) + " }}"
    elif isinstance(value, str) and _PLAIN.fullmatch(value) and _is_itself(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def flow_text(node: Node) -> str:
    """A value in one line."""
    if isinstance(node.value, Mapping):
        pairs = (f"{scalar_text(k)}: {flow_text(m.node)}" for k, m in node.members.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(node.value, tuple):
        return "[" + ", ".join(map(flow_text, node.items)) + "]"
    return scalar_text(node.value)  # type: ignore[arg-type]  # nothing is unknown in what is written


def block_lines(root: Node, comment: Callable[[Location], str]) -> Iterator[str]:
    """Yield the lines of a mapping, keys in its order.

    Args:
        root: A mapping; nothing in it is unknown.
        comment: What to say of values from a place; empty for nothing. Where all of a value is from
            one place it is said once.
    """
    yield from _members(root, comment, 0)


def _members(node: Node, comment: Callable[[Location], str], depth: int) -> Iterator[str]:
    indent = _INDENT * depth
    for key, member in node.members.items():
        head, value = f"{indent}{scalar_text(key)}:", member.node
        said = dict.fromkeys(comment(place) for place in places(value))
        remark = "; ".join(filter(None, said))
        line = f"{head} {flow_text(value)}"
        fits = len(line) <= WIDTH and (not value.members or (depth > 0 and len(said) == 1))
        if fits or not (value.members or value.items):
            yield from _remarked(line, remark, indent)
        else:
            yield from _remarked(head, remark if len(said) == 1 or value.items else "", indent)
            yield from _below(value, comment if len(said) > 1 else _silent, depth + 1)


def _below(node: Node, comment: Callable[[Location], str], depth: int) -> Iterator[str]:
    yield from (f"{_INDENT * depth}- {flow_text(item)}" for item in node.items)
    yield from _members(node, comment, depth)


def _remarked(line: str, remark: str, indent: str) -> Iterator[str]:
    """Yield a line with its comment, above it if that is a long one."""
    if len(remark) > _REMARK_MIN and len(line) + len(remark) > _REMARKED_WIDTH:
        words = textwrap.wrap(remark, WIDTH - len(indent), break_on_hyphens=False)
        yield from (f"{indent}# {each}" for each in words)
        yield line
    else:
        yield f"{line}  # {remark}" if remark else line


def _silent(_: Location) -> str:
    """The comment on what was commented as a whole."""
    return ""


def places(node: Node) -> Iterator[Location]:
    """Yield the places of all scalars at or below a node, and of what is empty."""
    below = [member.node for member in node.members.values()] or list(node.items)
    for each in below:
        yield from places(each)
    if not below:
        yield node.at


def _is_itself(text: str) -> bool:
    """Return whether the text without quotes is this string, and no number, boolean or null."""
    try:
        return resolve(text) == text
    except ValueError:
        return False
