"""Types a fault's fix into the text of a recipe, as a person would who trusts it."""

import re
from collections.abc import Iterator

import yaml

_PAIR = re.compile(r"(?P<key>[\w-]+): (?P<value>.+)", re.DOTALL)


def typed(text: str, line: int, column: int, fix: str) -> str | None:
    """The recipe after the fix; None where the fix is prose, with nothing to type.

    Args:
        text: The recipe.
        line: Of the fault, 1-based.
        column: Of the fault, 1-based.
        fix: Its words. The first of its alternatives is typed.
    """
    try:
        root = yaml.compose(text)
    except yaml.YAMLError:
        return None
    if root is None or text.splitlines()[line - 1][column - 1 :].startswith("*"):
        return None
    at = _Place(text, root, line - 1, column - 1)
    if written := re.match(r"(?:write|quote it:) `([^`]+)`(?=$|,)", fix):
        return at.replaced(written[1])
    if axis := re.match(r"write `(\w+: [^`]+)` for axis '(\w+)'$", fix):
        return at.replaced(axis[1])
    if added := re.match(r"add `([^`]+)` to ([\w.]+)$", fix):
        return _add(text, added[2], added[1])
    if added := re.match(r"add `([^`]+)`", fix):
        return at.added(added[1])
    if re.match(r"remove it(?=$|[,:])", fix):
        return at.removed()
    return None


class _Place:
    """What stands at a line and column: a key with its value, or a value."""

    def __init__(self, text: str, root: yaml.Node, line: int, column: int) -> None:
        self._text, self._root = text, root
        self._key: yaml.Node | None = None
        self._value: yaml.Node | None = None
        self._owner: str = ""
        for key, value in _nodes(root):
            for node in (key, value):
                if node is not None and (node.start_mark.line, node.start_mark.column) == (
                    line,
                    column,
                ):
                    self._key, self._value = key, value
                    self._at_key = node is key
                    return
        self._at_key = False

    def replaced(self, words: str) -> str:
        """`words` in the place of the key or of the value."""
        assert self._value is not None, "nothing is at the fault's place"
        pair = _PAIR.fullmatch(words)
        node = self._key if self._at_key and pair is None else self._value
        if pair is not None and self._key is not None and self._key.value == pair["key"]:
            words = pair["value"]
        if self._at_key and words.endswith(":"):
            words = words.removesuffix(":")
        assert node is not None
        return self._spliced(node.start_mark.index, _end(self._text, node), words)

    def added(self, words: str) -> str:
        """`words` as one more member of the mapping, or of the one that the key has."""
        mapping = self._value
        if not isinstance(mapping, yaml.MappingNode) or words.startswith("calibration"):
            mapping = self._root
        if mapping is self._root:
            return f"{self._text.rstrip()}\n{words}\n"
        if mapping.flow_style:
            comma = ", " if mapping.value else ""
            start = mapping.start_mark.index + 1
            return self._spliced(start, start, f"{words}{comma}")
        first = mapping.value[0][0].start_mark
        return self._spliced(first.index, first.index, f"{words}\n{' ' * first.column}")

    def removed(self) -> str:
        """The text without the key and its value, or without the item."""
        assert self._value is not None
        start = (self._key or self._value).start_mark.index
        end = _end(self._text, self._value)
        comma = re.match(r"\s*,\s*", self._text[end:])
        return self._spliced(start, end + (comma.end() if comma else 0), "")

    def _spliced(self, start: int, end: int, words: str) -> str:
        return f"{self._text[:start]}{words}{self._text[end:]}"


def _nodes(
    node: yaml.Node, above: tuple[int, ...] = ()
) -> Iterator[tuple[yaml.Node | None, yaml.Node]]:
    """(key, value) of every member below, (None, item) of every item; the outermost last."""
    if id(node) in above:  # an alias of what it is in
        return
    above = (*above, id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _nodes(value, above)
            yield key, value
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _nodes(item, above)
            yield None, item
    if node.start_mark.index == 0:
        yield None, node


def _end(text: str, node: yaml.Node) -> int:
    """Where a node's text ends; a block's end mark is at the next token."""
    return node.start_mark.index + len(text[node.start_mark.index : node.end_mark.index].rstrip())


def _add(text: str, section: str, words: str) -> str:
    """`words` as a member (or an item, `{...}`) of a section, which is made where there is none."""
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    node: yaml.Node = root
    for part in section.split("."):
        assert isinstance(node, yaml.MappingNode)
        found = next((value for key, value in node.value if key.value == part), None)
        if found is None:
            return f"{text.rstrip()}\n{section}:\n  {words}\n"
        node = found
    if not isinstance(node, yaml.CollectionNode):  # `dynamic_axes:` and nothing
        return f"{text[: node.start_mark.index]} {{{words}}}{text[node.end_mark.index :]}"
    if node.flow_style:
        start = node.start_mark.index + 1
        return f"{text[:start]}{words}{', ' if node.value else ''}{text[start:]}"
    first = node.value[0][0] if isinstance(node, yaml.MappingNode) else node.value[0]
    at = first.start_mark
    dash = "- " if isinstance(node, yaml.SequenceNode) else ""
    return f"{text[: at.index]}{words}\n{' ' * (at.column - len(dash))}{dash}{text[at.index :]}"
