"""The key `providers` in all its forms -> targets and what each must show."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import Axis, DummyInput, Location
from onnxbuild.core.target import CPU, CPU_TARGET, Link, Require, Target, TargetGates
from onnxbuild.document.node import Node, Path, plain
from onnxbuild.providers import named, short_name

GATES = ("require", "max_cpu_nodes", "min_coverage")
OF_TARGET = (*GATES, "provider", "chain", "library", "environment")
"""Keys of a target that are no options of its provider."""

ReadLibrary = Callable[[Node, Path], Entrypoint | None]
ReadEnvironment = Callable[[Node, Path], Environment | None]


@dataclass(frozen=True, slots=True)
class LinkNode:
    """One provider as a recipe writes it.

    Attributes:
        provider: Short name, or as written where there is none.
        options: Option -> its value's node.
        at: Where the provider is named.
        path: Of that place in the recipe.
    """

    provider: str
    options: Mapping[str, Node]
    at: Location
    path: Path


@dataclass(frozen=True, slots=True)
class TargetNode:
    """One target as a recipe writes it.

    Attributes:
        name: The user's, or the provider's.
        at: Where it is named.
        path: Of its value in the recipe.
        links: Its providers; none where neither the name nor a key says one.
        own: The mapping that holds its gates; None where it is written as a name or a list alone.
    """

    name: str
    at: Location
    path: Path
    links: tuple[LinkNode, ...]
    own: Node | None = None


def target_nodes(node: Node | None) -> list[TargetNode]:
    """The targets that `providers` names, as far as it can be read.

    Args:
        node: The value of `providers`; None for none.
    """
    if node is None:
        return []
    found: list[TargetNode] = []
    for name, member in node.members.items():
        found.append(_named(name, member.at, member.node, ("providers", name)))
    for n, item in enumerate(node.items):
        path: Path = ("providers", n)
        if item.items:
            links = tuple(_links(item, path))
            name = "-".join(link.provider for link in links)
            found.append(TargetNode(name, item.at, path, links))
        elif isinstance(item.value, str):
            found.append(_named(item.value, item.at, None, path))
        for name, member in item.members.items():
            found.append(_named(name, member.at, member.node, (*path, name)))
    return found


def _named(name: str, at: Location, node: Node | None, path: Path) -> TargetNode:
    chain, provider = (None if node is None else node.child(key) for key in ("chain", "provider"))
    if chain is not None:
        return TargetNode(name, at, path, tuple(_links(chain, (*path, "chain"))), node)
    members = {} if node is None else node.members
    options = {key: each.node for key, each in members.items() if key not in OF_TARGET}
    if provider is not None:
        link = LinkNode(short_name(str(provider.value)), options, provider.at, path)
        return TargetNode(name, at, path, (link,), node)
    own = short_name(name)
    return TargetNode(own, at, path, (LinkNode(own, options, at, path),), node)


def _links(chain: Node, path: Path) -> Iterator[LinkNode]:
    for n, item in enumerate(chain.items):
        if isinstance(item.value, str):
            yield LinkNode(short_name(item.value), {}, item.at, (*path, n))
        for name, member in item.members.items():
            options = {key: each.node for key, each in member.node.members.items()}
            yield LinkNode(short_name(name), options, member.at, (*path, n, name))


def read_targets(
    node: Node | None,
    inputs: Mapping[str, DummyInput],
    axes: Mapping[str, Axis],
    read_library: ReadLibrary,
    read_environment: ReadEnvironment,
) -> tuple[dict[str, Target], dict[str, TargetGates]]:
    """Targets by name, and what each must show.

    Args:
        node: The value of `providers`, without faults; None for the CPU alone.
        inputs: The model's, for profiles of shapes.
        read_library: Reads the path of a plug-in's library; None where it has faults.
        read_environment: Reads a target's environment; None where it has faults.
    """
    written = target_nodes(node)
    if not written:
        return {CPU: CPU_TARGET}, {CPU: TargetGates("one")}
    targets, gates = {}, {}
    for each in written:
        library, environment = (
            None if each.own is None else each.own.child(key) for key in ("library", "environment")
        )
        found = None if library is None else read_library(library, (*each.path, "library"))
        place = (*each.path, "environment")
        other = None if environment is None else read_environment(environment, place)
        links = tuple(_link(link, inputs, axes) for link in each.links)
        targets[each.name] = Target(each.name, links, found, other)
        gates[each.name] = _gates(each, alone=len(written) == 1)
    return targets, gates


def _link(node: LinkNode, inputs: Mapping[str, DummyInput], axes: Mapping[str, Axis]) -> Link:
    options: dict[str, Any] = {name: plain(each) for name, each in node.options.items()}
    provider = named(node.provider)
    for name, shorthand in provider.shorthands.items():
        if options.pop(name, False):
            options = shorthand.expand(options, inputs, axes)
    return Link(node.provider, provider.written(options))


def _gates(node: TargetNode, *, alone: bool) -> TargetGates:
    own = {} if node.own is None else {key: node.own.child(key) for key in GATES}
    values = {key: plain(each) for key, each in own.items() if each is not None}
    asked = values.pop("require", None)
    expected: Require = (
        "one" if alone or any(link.provider == CPU for link in node.links) else "none"
    )
    require: Require = expected if asked is None else "all" if asked else "none"
    return TargetGates(require, **values)
