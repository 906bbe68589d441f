"""Modules of nodes, from what exporters wrote, names of constants and nodes, and neighbours.

Exporters keep a module's path in the names of its weights, and at times in those of its nodes. What
has none (a Reshape, an optimizer's MatMul) belongs where its neighbours do.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from onnxbuild.onnxkit.model.blocks import module_path
from onnxbuild.onnxkit.pictures.nodes import GraphNode

Scope = tuple[str, ...]
"""`("encoder", "layer.3", "attention")`: a number stays with the name before it."""

SHAPES = ("shapes and masks",)
"""Scope of nodes that are computed from inputs alone, for several layers."""

_WEIGHT_ELEMENTS = 16
_FLOATS = ("float", "bfloat", "int8", "uint8", "int4", "uint4")
_FAMILY = 3
_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")


def find_scopes(nodes: Sequence[GraphNode]) -> tuple[dict[int, Scope], float]:
    """Return each node's scope by its number, and the share of nodes that have one of their own."""
    own = _own_scopes(nodes)
    share = len(own) / len(nodes) if nodes else 0.0
    if not own:
        return {node.number: () for node in nodes}, share
    prefixes = {each[:n] for each in own.values() for n in range(len(each))}
    numbered = {each for each in prefixes if any(_is_under_number(each, s) for s in own.values())}
    makers = {name: node.number for node in nodes for name in node.makes}
    readers: dict[int, list[int]] = {}
    for node in nodes:
        for number in _makers_of(node, makers):
            readers.setdefault(number, []).append(node.number)
    after, common = _following(nodes, own, readers)
    found: dict[int, Scope] = {}
    for node in nodes:
        number = node.number
        if number in own:
            found[number] = own[number]
            continue
        known = (found.get(each, ()) for each in sorted(set(_makers_of(node, makers))))
        before = [each for each in known if each and each != SHAPES]
        found[number] = _scope(
            node, before, after.get(number), common.get(number), numbered,
            is_own=any(each in own for each in _makers_of(node, makers)),
        )  # fmt: skip
    _even_out(nodes, own, found)
    return found, share


def tokens(path: Sequence[str]) -> Scope:
    """Return a path with each number joined to the name before it."""
    found: list[str] = []
    for part in path:
        if part.isdigit() and found and not found[-1].rpartition(".")[2].isdigit():
            found[-1] = f"{found[-1]}.{part}"
        else:
            found.append(part)
    return tuple(found)


def is_numbered(token: str) -> bool:
    """Return whether a token is one of several equal modules: `layer.3`, `3`, `block_3`."""
    return token[-1:].isdigit()


def _own_scopes(nodes: Sequence[GraphNode]) -> dict[int, Scope]:
    """Return scopes by the exporter's metadata, node names, or constants' names, largest first."""
    by_name = {node.number: module_path(node.name) for node in nodes if "/" in node.name}
    trusted = {n: path for n, path in by_name.items() if path}
    leading = {node.name.startswith("/") for node in nodes if node.number in trusted}
    if leading != {True} and 2 * len(trusted) < len(nodes):
        trusted = {}
    readers = Counter(each.name for node in nodes for each in node.weights)
    found = {}
    for node in nodes:
        weights = sorted(node.weights, key=lambda each: -each.bytes)
        named = (each.name for each in weights if readers[each.name] == 1 and "/" not in each.name)
        paths = map(module_path, named)
        path = node.scopes or trusted.get(node.number) or next(filter(None, paths), ())
        if path:
            found[node.number] = tokens(path)
    return found


def _makers_of(node: GraphNode, makers: Mapping[str, int]) -> Iterator[int]:
    return (makers[name] for name in node.reads if name in makers)


def _following(
    nodes: Sequence[GraphNode], own: Mapping[int, Scope], readers: Mapping[int, Sequence[int]]
) -> tuple[dict[int, Scope], dict[int, Scope]]:
    """Return the first scope among a node's readers, and what all their scopes have in common."""
    after: dict[int, Scope] = {}
    common: dict[int, Scope] = {}
    for node in reversed(nodes):
        number = node.number
        reading = sorted(readers.get(number, ()))
        firsts = [own.get(each) or after.get(each) for each in reading]
        first = next(filter(None, firsts), None)
        if first:
            after[number] = first
        shared = [own.get(each) or common.get(each) for each in reading]
        known = [each for each in shared if each]
        if known:
            common[number] = _prefix(known)
    return after, common


def _scope(
    node: GraphNode,
    before: Sequence[Scope],
    after: Scope | None,
    common: Scope | None,
    numbered: set[Scope],
    *,
    is_own: bool,
) -> Scope:
    """Return the scope of a node without a path of its own.

    Args:
        before: Scopes of the nodes whose values it reads, in its order.
        after: The first scope that follows.
        common: What all scopes that follow have in common.
        numbered: Scopes that hold numbered modules, somewhere below.
        is_own: Whether what it reads comes from a node with a path of its own.
    """
    if not before and after is None:
        return ()
    if _is_weighted(node):  # a weight that lost its name; the bias that follows has its own
        return after if after and (before or _is_one_place(common or (), numbered)) else ()
    if not before:
        return common if common and _is_one_place(common, numbered) else SHAPES
    latest = max(before, key=len) if len(set(before)) == 1 else before[-1]
    if node.op_type in _QUANTIZERS and after:
        if common and _is_one_place(common, numbered):
            return common
        return _child(common or (), after)
    if len(before) == 1 and not node.weights and not is_own:
        return latest  # an activation stays with what it is of
    if after is None:
        return _child(_prefix([*before]), latest) if len(before) > 1 else latest
    shared = _prefix([latest, after])
    found = shared if any(map(is_numbered, shared)) else _child(shared, latest)
    if len(before) > 1:
        joined = _prefix(before)
        if joined not in before:
            below = latest[: len(joined) + 1]
            joined = below if below and is_numbered(below[-1]) else joined
        found = max(found, joined, key=len)
    return found


def _is_weighted(node: GraphNode) -> bool:
    """Return whether a node has weights, and not only shapes or scales."""
    return any(
        each.parameters >= _WEIGHT_ELEMENTS and each.dtype.startswith(_FLOATS)
        for each in node.weights
    )


def _even_out(
    nodes: Sequence[GraphNode], own: Mapping[int, Scope], found: dict[int, Scope]
) -> None:
    """Move a numbered module's surplus nodes to its parent, if only neighbours put them there."""
    families: dict[Scope, dict[Scope, list[GraphNode]]] = {}
    for node in nodes:
        scope = found[node.number]
        place = next((n for n, part in enumerate(scope) if is_numbered(part)), None)
        if place is not None:
            stem = (*scope[:place], scope[place].rstrip("0123456789"))
            families.setdefault(stem, {}).setdefault(scope[: place + 1], []).append(node)
    for family in families.values():
        kinds = {scope: Counter(n.op_type for n in inside) for scope, inside in family.items()}
        forms = Counter(tuple(sorted(each.items())) for each in kinds.values())
        usual, often = max(forms.items(), key=lambda pair: (pair[1], pair[0]))
        if len(family) < _FAMILY or 2 * often < len(family):
            continue
        for scope, inside in family.items():
            more = kinds[scope] - Counter(dict(usual))
            for node in reversed(inside):
                if more[node.op_type] and node.number not in own:
                    more[node.op_type] -= 1
                    found[node.number] = scope[:-1]


def _is_one_place(scope: Scope, numbered: set[Scope]) -> bool:
    """Return whether a scope is in one of several equal modules, or holds none."""
    return any(map(is_numbered, scope)) or scope not in numbered


def _child(shared: Scope, scope: Scope) -> Scope:
    """`scope` up to its first number after `shared`; where there is none, one level below it."""
    for place in range(len(shared), len(scope)):
        if is_numbered(scope[place]):
            return scope[: place + 1]
    return scope[: len(shared) + 1]


def _prefix(scopes: Sequence[Scope]) -> Scope:
    first, last = min(scopes), max(scopes)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]


def _is_under_number(prefix: Scope, scope: Scope) -> bool:
    return scope[: len(prefix)] == prefix and any(map(is_numbered, scope[len(prefix) :]))
