"""vars, matrix and templates: one tree of nodes in, one rendered tree for each combination out."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault, Faults, show
from onnxbuild.document.node import (
    DEPTH_MAX,
    NODES_MAX,
    UNKNOWN,
    Member,
    Node,
    Path,
    Scalar,
    mapping,
    plain,
    sequence,
    unknown_paths,
)
from onnxbuild.document.recipe_names import RecipeName

if TYPE_CHECKING:
    from onnxbuild.recipe.templates.template import Templates

COMBINATIONS_MAX = 10_000
_CHARACTERS_MAX = 262_144


def combinations(matrix: Node | None, faults: Faults) -> Iterator[dict[str, Scalar]]:
    """Yield every combination of one value for each name, the last name varying fastest.

    Args:
        matrix: The recipe's valid `matrix`, or None for a single, empty choice.
        faults: Takes what is wrong.
    """
    members = {} if matrix is None else matrix.members
    count = math.prod(len(member.node.items) for member in members.values())
    if matrix is not None and count > COMBINATIONS_MAX:
        what = f"matrix has {count:,} combinations; expected at most {COMBINATIONS_MAX:,}"
        faults.add(Fault(what, matrix.at, "shorten a list", ("matrix",)))
        return
    lists = [[plain(item) for item in member.node.items] for member in members.values()]
    for values in itertools.product(*lists):
        yield dict(zip(members, values, strict=True))


def member_name(name: str, component: str, chosen: Mapping[str, Scalar]) -> RecipeName:
    """`NAME@COMPONENT,k=v,k2=v2`, values reduced to what a folder's name can hold."""
    pairs = (f"{key}={_file_name(value)}" for key, value in chosen.items())
    return RecipeName(name, ",".join(filter(None, (component, *pairs))))


def _file_name(value: Scalar) -> str:
    text = show(value) if isinstance(value, bool) or value is None else str(value)
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)


class Renderer:
    """Renders trees; a node without templates is returned as it is."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._templates: Templates | None = None
        self._declared: set[str] = set()

    def takers(self, *roots: Node) -> Callable[[str], bool]:
        """Says of a var whether a template outside of `vars` takes it, by way of other vars or not.

        Args:
            roots: Recipes; a template of any of them counts.
        """
        takes: dict[str, set[str]] = {}
        for root in roots:
            for path, text in _templates_of(root, ()):
                taker = str(path[1]) if path[0] == "vars" else ""
                takes.setdefault(taker, set()).update(self._names(text))
        reached, stack = set[str](), list(takes.get("", ()))
        while stack:
            name = stack.pop()
            if name not in reached:
                reached.add(name)
                stack += takes.get(name, ())
        return reached.__contains__

    def _names(self, text: str) -> frozenset[str]:
        from onnxbuild.recipe.templates.template import Templates

        self._templates = self._templates or Templates()
        return self._templates.names(text)

    def scope(self, variables: Node | None, chosen: Mapping[str, Scalar]) -> dict[str, Any]:
        """Return the names that templates see: the matrix's choice, then the vars, each over those before it.

        A name in both is the matrix's: a base's single value becomes a sweep's.
        """
        self._declared = set() if variables is None else set(variables.members)
        scope: dict[str, Any] = dict(chosen)
        for name, member in ({} if variables is None else variables.members).items():
            if name not in chosen:
                value = self.render(member.node, scope, ("vars", name))
                scope[name] = UNKNOWN if unknown_paths(value) else plain(value)
        return scope

    def render(self, node: Node, scope: Mapping[str, Any], path: Path = ()) -> Node:
        """The tree with its templates replaced by their values; UNKNOWN where one fails.

        Args:
            scope: Name -> JSON value.
            path: Where the tree stands in the recipe.
        """
        if not node.templated:
            return node
        if isinstance(node.value, Mapping):
            members = {
                key: Member(member.at, self.render(member.node, scope, (*path, key)))
                for key, member in node.value.items()
            }
            return Node(node.at, members)
        if isinstance(node.value, tuple):
            items = tuple(
                self.render(item, scope, (*path, n)) for n, item in enumerate(node.value)
            )
            return Node(node.at, items)
        return self._rendered(str(node.value), node.at, scope, path)

    def _rendered(self, text: str, at: Location, scope: Mapping[str, Any], path: Path) -> Node:
        from onnxbuild.recipe.templates.template import TemplateFault, Templates

        self._templates = self._templates or Templates()
        try:
            value = self._templates.render(text, scope)
            return Node(at, UNKNOWN) if value is UNKNOWN else _Native(at).node(value, 0)
        except TemplateFault as fault:
            what, fix = fault.what, fault.fix
            if fault.name in self._declared:
                what = f"'{fault.name}' is declared below; a var may use those above it"
                fix = f"move `{fault.name}` above this line"
            self._faults.add(Fault(what, at, fix, path))
        except _NotPlainError as error:
            fix = "give a string, a number, true or false, a list or a mapping, and not too large"
            self._faults.add(Fault(f"the template gives {error}", at, fix, path))
        return Node(at, UNKNOWN)


def _templates_of(node: Node, path: Path) -> Iterator[tuple[Path, str]]:
    if not node.templated:
        return
    if isinstance(node.value, Mapping):
        for key, member in node.value.items():
            yield from _templates_of(member.node, (*path, key))
    elif isinstance(node.value, tuple):
        for number, item in enumerate(node.value):
            yield from _templates_of(item, (*path, number))
    else:
        yield path, str(node.value)


class _NotPlainError(ValueError):
    """A template's value is nothing that a recipe can hold."""


class _Native:
    """Turns a template's value into nodes, all at the template's place."""

    def __init__(self, at: Location) -> None:
        self._at = at
        self._nodes = 0
        self._characters = 0

    def node(self, value: Any, depth: int) -> Node:
        self._nodes += 1
        self._characters += len(value) if isinstance(value, str) else 0
        if self._nodes > NODES_MAX or self._characters > _CHARACTERS_MAX or depth > DEPTH_MAX:
            raise _NotPlainError("more than a recipe may hold")
        if value is None or isinstance(value, (str, bool, int)):
            return Node(self._at, value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise _NotPlainError(f"{value}, which is not finite")
            return Node(self._at, value)
        if isinstance(value, (list, tuple)):
            return sequence([self.node(item, depth + 1) for item in value], self._at)
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            members = {k: Member(self._at, self.node(v, depth + 1)) for k, v in value.items()}
            return mapping(members, self._at)
        raise _NotPlainError(f"a {type(value).__name__}, which is no YAML value")
