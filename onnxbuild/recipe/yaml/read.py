"""Bytes -> nodes: YAML read strictly, nothing expanded that could explode.

Events come from PyYAML's pure parser; the tree is built without recursion, so that neither deep
nesting nor an alias bomb costs more than the limits in `node`.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault, Faults, show
from onnxbuild.document.node import (
    DEPTH_MAX,
    NODES_MAX,
    UNKNOWN,
    Member,
    Node,
    mapping,
    scalar,
    sequence,
)
from onnxbuild.recipe.yaml.scalars import resolve
from onnxbuild.recipe.yaml.syntax import decode, syntax_fault

SCALAR_BYTES_MAX = 65_536


@dataclass(slots=True)
class _Tree:
    """A node with its cost once aliases are expanded."""

    node: Node
    size: int = 1
    height: int = 0
    plain_key: str | None = None


@dataclass(slots=True)
class _OpenNode:
    """A list or mapping whose end has not come yet.

    Attributes:
        at: Where it starts.
        anchor: Its name for aliases.
        is_mapping: Whether it is a mapping.
        items: Those of a list.
        members: Those of a mapping.
        key: The key whose value comes next.
        is_unknown: It can't be read; its fault is reported already.
        size: Nodes in it once aliases are expanded.
        height: Levels below it.
    """

    at: Location
    anchor: str | None
    is_mapping: bool
    items: list[Node] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)
    key: _Tree | None = None
    is_unknown: bool = False
    size: int = 1
    height: int = 0


class _Stop(Exception):  # noqa: N818 - it only ends the reading
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what)
        self.fault = fault


def read_yaml(content: bytes, shown: str, faults: Faults) -> Node | None:
    """The one document in `content`, or None where it can't be read at all.

    Args:
        content: A file's bytes.
        shown: The file's name in messages.
        faults: Takes what is wrong.
    """
    try:
        text = decode(content, shown)
    except ValueError as error:
        faults.add(error.args[0])
        return None
    composer = _Composer(shown, faults)
    try:
        loader: Any = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        faults.add(syntax_fault(error, shown, text))
        return None
    try:
        while loader.check_event():
            composer.take(loader.get_event())
    except _Stop as stop:
        faults.add(stop.fault)
        return None
    except yaml.YAMLError as error:
        fault = syntax_fault(error, shown, text)
        if fault.at.line not in composer.template_lines:  # what follows a template is no YAML
            faults.add(fault)
        return None
    except (ValueError, OverflowError):  # PyYAML's chr() and int() on impossible escapes
        at = composer.place(loader.get_mark())
        faults.add(Fault("this is not a character or number YAML knows", at, "remove the escape"))
        return None
    finally:
        loader.dispose()
    if composer.root is None:
        at = Location(shown, 1, 1)
        faults.add(Fault("the file is empty", at, "start it with `version: 1`"))
    return composer.root


class _Composer:
    def __init__(self, shown: str, faults: Faults) -> None:
        self.root: Node | None = None
        self.template_lines: set[int] = set()
        self._shown = shown
        self._faults = faults
        self._stack: list[_OpenNode] = []
        self._anchors: dict[str, _Tree | None] = {}
        self._total = 0
        self._documents = 0

    def place(self, mark: Any) -> Location:
        return Location(self._shown, mark.line + 1, mark.column + 1)

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                at = self.place(event.start_mark)
                fix = "put it in a file of its own; if it is the same recipe, remove the `---`"
                raise _Stop(Fault("a second document starts here", at, fix))
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._refuse_tag(event)
            at = self.place(event.start_mark)
            if event.anchor:
                self._anchors[event.anchor] = None
            if len(self._stack) >= DEPTH_MAX:
                raise _too_deep(at)
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            self._stack.append(_OpenNode(at, event.anchor, is_mapping))
            self._count(1, at)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self._close()

    def _close(self) -> None:
        done = self._stack.pop()
        at = done.at
        node = mapping(done.members, at) if done.is_mapping else sequence(done.items, at)
        if done.is_unknown:
            node = Node(at, UNKNOWN)
        tree = _Tree(node, done.size, done.height + 1)
        if done.anchor:
            self._anchors[done.anchor] = tree
        self._place(tree)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        at = self.place(event.start_mark)
        self._refuse_tag(event)
        self._count(1, at)
        is_plain = event.style is None and event.implicit[0]
        node, key = (
            self._resolved(event.value, at) if is_plain else (scalar(event.value, at), None)
        )
        if len(event.value) > SCALAR_BYTES_MAX or not _encodes(event.value):
            what = "this string is longer than 65,536 characters"
            if len(event.value) <= SCALAR_BYTES_MAX:
                what = "this string holds half of a surrogate pair"
            self._faults.add(Fault(what, at, "keep data in a file and name it under `files`"))
            node = Node(at, UNKNOWN)
        tree = _Tree(node, plain_key=key)
        if event.anchor:
            self._anchors[event.anchor] = tree
        self._place(tree)

    def _resolved(self, text: str, at: Location) -> tuple[Node, str]:
        try:
            node = scalar(resolve(text), at)
        except ValueError as error:
            fix = f'write a smaller number, or quote it: `"{text}"`' if len(text) < 48 else ""  # noqa: PLR2004
            self._faults.add(Fault(str(error), at, fix))
            return Node(at, UNKNOWN), text
        if isinstance(node.value, (int, float)) and show(node.value) != text:
            node = replace(node, text=text)
        return node, text

    def _alias(self, event: yaml.AliasEvent) -> None:
        at = self.place(event.start_mark)
        if event.anchor not in self._anchors:
            raise _Stop(
                Fault(
                    f"alias '*{event.anchor}' has no anchor above it",
                    at,
                    f"write `&{event.anchor}` before the value meant, or quote this one",
                )
            )
        tree = self._anchors[event.anchor]
        if tree is None:
            raise _Stop(Fault(f"alias '*{event.anchor}' contains itself", at, "remove it"))
        if len(self._stack) + tree.height > DEPTH_MAX:
            raise _too_deep(at)
        self._count(tree.size, at)
        self._place(_Tree(tree.node, tree.size, tree.height, tree.plain_key))

    def _place(self, tree: _Tree) -> None:
        if not self._stack:
            self.root = tree.node
            return
        parent = self._stack[-1]
        parent.size += tree.size
        parent.height = max(parent.height, tree.height)
        if not parent.is_mapping:
            parent.items.append(tree.node)
        elif parent.key is None:
            parent.key = tree
        else:
            key, parent.key = parent.key, None
            self._member(parent, key, tree.node)

    def _member(self, parent: _OpenNode, key: _Tree, node: Node) -> None:
        at, name = key.node.at, key.node.value
        if key.plain_key == "<<":
            fix = "repeat the keys, or put them in a file that this one `extends`"
            self._faults.add(Fault("merge keys (`<<`) are not part of a recipe", at, fix))
        elif node.value is None and _is_bare_template(key.node):
            parent.is_unknown = True
            self.template_lines.add(parent.at.line)
            what = "a template stands in quotes; without them, YAML takes its braces for a mapping"
            self._faults.add(Fault(what, parent.at, 'quote the value, as in `"{{ n }}"`'))
        elif name is UNKNOWN:
            return  # it has a fault already
        elif not isinstance(name, str):
            fix = (
                f'quote it: `"{key.plain_key}":`' if key.plain_key else "write a string as the key"
            )
            self._faults.add(Fault(f"key {show(name)} is not a string; keys are strings", at, fix))
        elif name in parent.members:
            first = parent.members[name].at
            what = f"key {show(name)} is written twice; the first is at {first}"
            self._faults.add(Fault(what, at, "remove one of the two"))
        else:
            parent.members[name] = Member(at, node)

    def _count(self, size: int, at: Location) -> None:
        self._total += size
        if self._total > NODES_MAX:
            what = f"the file holds more than {NODES_MAX:,} values once its aliases are expanded"
            raise _Stop(Fault(what, at, "use fewer aliases, or keep data in a file of its own"))

    def _refuse_tag(self, event: yaml.NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            at = self.place(event.start_mark)
            what = f"tag {show(tag)} found; a recipe has no tags"
            self._faults.add(Fault(what, at, "remove the tag, or quote the value"))


def _is_bare_template(key: Node) -> bool:
    """Return whether a mapping's key is `{n}`, which YAML finds in `{{ n }}`: names without values."""
    members = key.members.values()
    return bool(members) and all(each.node.value is None for each in members)


def _too_deep(at: Location) -> _Stop:
    what = f"the file is nested deeper than {DEPTH_MAX} levels"
    return _Stop(Fault(what, at, "remove the brackets or the indentation"))


def _encodes(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
